/* Reward functions inside reward functions: a section {id, args} in the options of another one. */
#ifndef TG_ENV_REWARD_INNER_H
#define TG_ENV_REWARD_INNER_H

#include "env-server/reward/reward.h"

/* Opens what the section chooses. TG_CONFIG: unknown, TG_UNSUPPORTED: not built; both say where. */
tg_status tg_reward_open_section(tg_reward *out, const tg_node *section, const char *path,
                                 const tg_open_context *ctx, tg_error *err) TG_MUST_CHECK;

/* The parts of a sum, when r is the reward `weighted`: *n of them, each with its name and weight. NULL: it is not. */
tg_reward *tg_reward_parts(const tg_reward *r, size_t *n);

#endif
