/* What RL4LMs decides by name. */
#ifndef TG_ENV_COMPAT_H
#define TG_ENV_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

/* Actions of an environment whose tokenizer has this name or path; 0: as many as it has tokens. */
int64_t tg_compat_actions(const char *model_name);
/* A reward that RL4LMs computes after the rollout; its environment shows -inf until then. */
bool tg_compat_batched(const char *reward_name);

#endif
