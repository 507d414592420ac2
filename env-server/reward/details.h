/* Named parts of a reward that its function tells besides the value: a remote judge's "fluency" and "facts". They are
 * logged as components beside the reward they belong to and never enter its value.
 *
 *     tg_reward_details d = {.prefix = "judge"};
 *     tg_reward_details_add(&d, "fluency", 0.5, TG_REWARD_OK);     // component "judge.fluency"
 *     tg_reward_details_reset(&d);                                 // keeps the memory
 *     tg_reward_details_fini(&d); */
#ifndef TG_ENV_REWARD_DETAILS_H
#define TG_ENV_REWARD_DETAILS_H

#include "common/base/arena.h"
#include "proto/messages.h"

#include <stddef.h>

typedef struct tg_reward_details {
    const char *prefix;  /* borrowed; NULL: none */
    tg_component *items; /* read-only: n of them; names live until the next reset */
    size_t n;
    size_t cap; /* private */
    tg_arena arena;
} tg_reward_details;

/* The same name again adds to its value; the first status that is not OK stays. What exceeds the protocol's number of
 * components, or memory, is left out: details never fail a reward. */
void tg_reward_details_add(tg_reward_details *d, const char *name, double value,
                           tg_reward_status status);
void tg_reward_details_reset(tg_reward_details *d);
void tg_reward_details_fini(tg_reward_details *d);

#endif
