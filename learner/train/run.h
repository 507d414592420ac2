/* A run: what both trainers share. Opened by `textgen-learner train`, then handed to one of them. */
#ifndef TG_TRAIN_RUN_H
#define TG_TRAIN_RUN_H

#include "common/base/status.h"
#include "common/config/run_config.h"
#include "common/net/pool.h"
#include "common/net/security.h"
#include "common/nn/backend.h"
#include "common/nn/pass.h"
#include "common/text/tokenizer.h"
#include "common/text/stop_strings.h"
#include "learner/track/track.h"
#include "learner/train/checkpoint.h"
#include "learner/train/halt.h"
#include "learner/train/memory_plan.h"
#include "learner/train/operations.h"
#include "learner/train/settings.h"
#include "proto/split.h"

#include <stdbool.h>
#include <stdint.h>

/* A run that only evaluates. */
typedef struct tg_eval_opts {
    tg_split_list splits;
    bool json; /* results as JSON, not as a table */
} tg_eval_opts;

typedef struct tg_run_opts {
    const tg_run_config *config;
    const tg_train_settings *settings;
    const char *run_dir;
    const char *bind, *connect; /* override the config's; NULL: as it says */
    tg_security_opts security;  /* likewise, as a whole when a key is given */
    tg_ops_opts ops;            /* HTTP port, log */
    bool resume, overwrite;
    const tg_eval_opts *evaluation; /* NULL: the run trains */
    const tg_halt *halt;
} tg_run_opts;

typedef struct tg_run {
    tg_run_opts opts;
    const tg_train_settings *settings;
    const char *run_dir;
    uint64_t seed, digest;
    bool compat; /* reproduce RL4LMs's quirks */
    tg_backend *be;
    tg_security *security; /* NULL: no keys */
    tg_operations *operations;
    tg_pool *pool;
    const tg_env_spec *spec;
    tg_tokenizer *tokenizer;
    tg_tokenizer *text_tokenizer; /* of perplexity: NULL, or `tokenizer`, or another one */
    char *tokenizer_folder;
    char *model_folder; /* NULL: a fresh model */
    tg_arch arch;
    tg_track *track;
    tg_gen_settings rollout_gen, eval_gen;  /* with eos and lengths filled in */
    tg_stop_strings *stops, *rollout_stops; /* of eval_gen and rollout_gen; NULL: none */
    int n_envs, max_prompt, max_new;
    int positions;         /* tokens of the longest text */
    uint32_t *special;     /* (words of the vocabulary) bits of the tokenizer's special tokens */
    tg_memory_facts facts; /* of the memory plan */
    uint64_t planned;      /* its bytes */
    char title[200];
} tg_run;

/* Finds the model, prepares the folder, waits for the workers, checks the memory plan of on-policy training. */
tg_status tg_run_open(tg_run *run, const tg_run_opts *opts, tg_error *err) TG_MUST_CHECK;
void tg_run_close(tg_run *run);

/* The trainers. TG_INTERRUPTED: stopped by a signal, a checkpoint was written. */
tg_status tg_train_on_policy(tg_run *run, tg_error *err) TG_MUST_CHECK;
tg_status tg_train_supervised(tg_run *run, tg_error *err) TG_MUST_CHECK;
/* opts.evaluation: its splits, in order. TG_NOINPUT when the data has not all of them. */
tg_status tg_run_evaluate(tg_run *run, tg_error *err) TG_MUST_CHECK;

/* Makes, logs and checks the memory plan: tg_run_open, but of supervised training the trainer that knows its passes. */
tg_status tg_run_plan_memory(tg_run *run, const tg_pass_caps *supervised,
                             tg_error *err) TG_MUST_CHECK;

/* Says at the end of a run how many of its steps were left out as non-finite. */
void tg_run_tell_skipped(const tg_run_state *state, const char *what);
/* Model and tokenizer into <run>/model. */
tg_status tg_run_save_model(const tg_run *run, const tg_model *m, tg_error *err) TG_MUST_CHECK;

/* Architecture of the model that a config trains: of its folder, or of alg.model_config. `folder` is owned, NULL for a fresh model;
 * the tokenizer gives a fresh model's vocabulary. What does not go together with the config (root) is refused (fit.h). */
tg_status tg_run_arch(const tg_node *root, const tg_train_settings *s,
                      const tg_tokenizer *tokenizer, tg_arch *arch, char **folder,
                      tg_error *err) TG_MUST_CHECK;

/* Tokens that a prompt, or a result, may have beside `other` of the other: positions are shared unless there are two stacks. */
int tg_run_room(const tg_arch *arch, int positions, int other);
/* In what the trained networks' matrix products are computed on this machine, for people. */
const char *tg_run_products(const tg_train_settings *s, const char *backend);

/* A folder that already holds a run: TG_CONFIG, unless it is to be resumed or overwritten (then its artifacts are removed). */
tg_status tg_run_folder_prepare(const char *run_dir, bool resume, bool overwrite,
                                tg_error *err) TG_MUST_CHECK;

#endif
