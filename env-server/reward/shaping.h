/* RL4LMs's `shaping_fn`: another reward function, named in the options of the first, whose value is
 * added to it. */
#ifndef TG_ENV_SHAPING_H
#define TG_ENV_SHAPING_H

#include "env-server/reward/reward.h"

#define TG_OPT_SHAPING(S) TG_OPT_STR(S, shaping_fn, NULL, "Reward function whose value is added.")

/* Opens the named function with its defaults; name NULL: none, *out stays closed. TG_CONFIG when it
 * is unknown, not built, or needs options. */
tg_status tg_shaping_open(tg_reward *out, const char *name, const tg_open_context *ctx,
                          tg_error *err) TG_MUST_CHECK;
/* Adds its values to out[0 .. n) where both are there; a failed one fails the sum. */
tg_status tg_shaping_add(const tg_reward *shaping, const tg_reward_input *in, size_t n,
                         tg_reward_value *out, tg_error *err) TG_MUST_CHECK;

#endif
