/* The finished texts among those that a reward is asked for, to be judged together. */
#ifndef TG_ENV_REWARD_JUDGED_H
#define TG_ENV_REWARD_JUDGED_H

#include "env-server/judge/judgement.h"
#include "env-server/reward/reward.h"

typedef struct tg_finished {
    tg_metric_item *items;
    size_t *place;  /* among the inputs */
    double *values; /* to be filled */
    size_t n;
} tg_finished;

tg_status tg_finished_init(tg_finished *f, const tg_reward_input *in, size_t n,
                           tg_error *err) TG_MUST_CHECK;
void tg_finished_fini(tg_finished *f);
/* The values at their places, 0 where a text is not finished. */
void tg_finished_spread(const tg_finished *f, size_t n, tg_reward_value *out);

#endif
