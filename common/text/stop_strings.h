/* Texts that end a result: the result ends with the token in which one of them is complete, wherever in that token. A token's
 * text is what it adds in the middle of a sentence. Generation ends by them as in transformers, where the text may begin in the prompt;
 * an environment's episodes by what was generated alone. */
#ifndef TG_TEXT_STOP_STRINGS_H
#define TG_TEXT_STOP_STRINGS_H

#include "common/config/tree.h"
#include "common/text/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_stop_strings tg_stop_strings;

/* node: a text or a list of texts. vocab: ids that the model may give. TG_CONFIG: something else, or an empty text. The tokenizer is not
 * needed afterwards. */
tg_status tg_stop_strings_create(tg_stop_strings **out, const tg_node *node, const char *path,
                                 const tg_tokenizer *t, int vocab, tg_error *err) TG_MUST_CHECK;
void tg_stop_strings_destroy(tg_stop_strings **s);
bool tg_stop_strings_hit(const tg_stop_strings *s, const int32_t *tokens, int n);

#endif
