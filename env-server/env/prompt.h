/* Prompts to token ids: special tokens as the tokenizer's default, the text between them cut on one
 * side so that everything fits. Read-only after init: any thread. */
#ifndef TG_ENV_PROMPT_H
#define TG_ENV_PROMPT_H

#include "common/base/status.h"
#include "common/text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>

enum { TG_PROMPT_SPECIALS = 8 };

typedef struct tg_prompt_encoder {
    const tg_tokenizer *tokenizer; /* borrowed */
    size_t max_length;
    bool keep_end; /* truncation side "left" */
    int32_t before[TG_PROMPT_SPECIALS], after[TG_PROMPT_SPECIALS];
    size_t n_before, n_after;
} tg_prompt_encoder;

/* TG_CONFIG: max_length leaves no room between the special tokens. */
tg_status tg_prompt_init(tg_prompt_encoder *e, const tg_tokenizer *tokenizer, size_t max_length,
                         bool keep_end, tg_error *err) TG_MUST_CHECK;
/* Replaces what ids held. */
tg_status tg_prompt_encode(const tg_prompt_encoder *e, const char *text, tg_ids *ids,
                           tg_error *err) TG_MUST_CHECK;

#endif
