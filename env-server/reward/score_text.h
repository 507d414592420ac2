/* A text to be judged outside the event loop, with all a judge may look at; and the key of its content. */
#ifndef TG_ENV_SCORE_TEXT_H
#define TG_ENV_SCORE_TEXT_H

#include "common/base/arena.h"
#include "env-server/reward/reward.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_score_text {
    tg_score_item
        item; /* every string is there ("" for none), without NUL bytes; id: set by who sends it */
    uint32_t n_tokens; /* of the completion; 0: not known */
    bool done;         /* the completion is finished */
} tg_score_text;

/* A copy that shares nothing with the input; NUL bytes become U+FFFD. TG_NOMEM. */
tg_status tg_score_text_copy(tg_score_text *out, const tg_reward_input *in, tg_arena *arena,
                             tg_error *err) TG_MUST_CHECK;

/* 128 bits over `identity` (the function with its version and options) and everything in the texts: two equal keys are
 * taken for the same question. False: out of memory. */
bool tg_score_key(const char *identity, const tg_score_text *texts, size_t n, uint64_t key[2]);

/* A copy of results with their messages and components. False: out of memory. */
bool tg_score_results_copy(tg_score_result *to, const tg_score_result *from, size_t n,
                           tg_arena *arena);

#endif
