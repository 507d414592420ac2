/* The environment's part of a run's config: tokenizer, reward_fn, datapool, env and
 * train_evaluation.metrics, with RL4LMs's keys and defaults. */
#ifndef TG_ENV_SETTINGS_H
#define TG_ENV_SETTINGS_H

#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/run_config.h"
#include "env-server/entry.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_tokenizer_settings {
    const char *model_name;                     /* a folder, or a name to look up */
    const char *padding_side, *truncation_side; /* "left" or "right" */
    bool pad_token_as_eos_token;                /* only where there is no pad token */
    int64_t max_length;                         /* INT64_MIN: the tokenizer's own */
    const tg_node *at;                          /* where model_name is written */
} tg_tokenizer_settings;

typedef struct tg_mdp_settings {
    int64_t max_episode_length;
    int64_t max_prompt_length; /* INT64_MIN: the tokenizer's max_length */
    bool terminate_on_eos;
    const tg_node *stop_strings; /* a text or a list; may be NULL */
    const char *prompt_truncation_side;
    int64_t context_start_token; /* INT64_MIN: none */
    double priority_scale;       /* 0: every sample equally often */
} tg_mdp_settings;

typedef struct tg_env_settings {
    tg_tokenizer_settings tokenizer;
    tg_mdp_settings mdp;
    int64_t n_envs;
    int64_t judge_threads;   /* of models in rewards and metrics; 0: one per CPU */
    tg_open_context context; /* the run's compat */
    uint64_t seed;           /* the run's; pools that shuffle may use it */
    tg_choice datapool;
    tg_choice reward; /* entry NULL: none, as in supervised training */
    tg_choice *metrics;
    size_t n_metrics;
} tg_env_settings;

/* Reads and checks; everything lives in the config's arena. Components that are known but not built
 * are accepted here. */
tg_status tg_env_settings_read(tg_env_settings *out, tg_run_config *config,
                               tg_error *err) TG_MUST_CHECK;
/* TG_UNSUPPORTED naming the first component that is not built. */
tg_status tg_env_settings_require_built(const tg_env_settings *s, tg_error *err) TG_MUST_CHECK;
/* {"tokenizer": …, "reward_fn": …, "datapool": …, "env": …, "train_evaluation": {"metrics": …}},
 * every default explicit. */
void tg_env_settings_json(const tg_env_settings *s, tg_buf *out);
/* Of all that decides what an episode is; n_envs does not. */
uint64_t tg_env_settings_digest(const tg_env_settings *s);

#endif
