/* The finished texts among those that a reward is asked for are judged together. */
#ifndef TG_ENV_REWARD_JUDGED_H
#define TG_ENV_REWARD_JUDGED_H

#include "env-server/judge/judgement.h"
#include "env-server/reward/reward.h"

/* What fill says of the finished ones, in one call; 0 where a text is not finished. */
tg_status tg_judge_finished(const void *state, tg_judged_values *fill, const tg_reward_input *in,
                            size_t n, tg_reward_value *out, tg_error *err) TG_MUST_CHECK;

/* Of a tg_reward_ops: a model is asked, at the end, by a thread that may wait. */
#define TG_JUDGED_TRAITS .terminal = true, .slow = true, .waits = true, .deterministic = true

#endif
