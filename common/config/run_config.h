/* A whole run's config: the top level, checked and typed, and the sections as nodes for the parts
 * that own them.
 *
 *     tg_run_config c;
 *     tg_run_config_load(&c, "ppo.yml", overrides, n_overrides, err);     // TG_CONFIG or TG_NOINPUT, with file, line and key
 *     tg_opts_read(alg_table, &alg, tg_node_get(c.alg, "args"), "alg.args", &c.arena, err);
 *     tg_run_config_fini(&c);
 *
 * Sections and their keys are RL4LMs's; seed, compat, workers, learner and pool are ours. Only the
 * top level, learner and pool are checked here: tokenizer, reward_fn, datapool, env and
 * train_evaluation.metrics belong to textgen-env, alg and the rest of train_evaluation to
 * textgen-learner. */
#ifndef TG_CONFIG_RUN_CONFIG_H
#define TG_CONFIG_RUN_CONFIG_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/option.h"
#include "common/config/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_learner_config {
    const char *backend;      /* "cpu" or "ref" */
    int64_t threads;          /* 0: as many as the process may run on */
    int64_t keep_checkpoints; /* how many of the newest stay */
    bool keep_best;
    const tg_node *memory_limit; /* as written; memory_limit_bytes is its reading */
    uint64_t memory_limit_bytes; /* 0: no limit */
} tg_learner_config;

typedef struct tg_pool_config {
    const char *bind, *connect; /* the learner's addresses; both NULL: the supervisor chooses */
    int64_t min_workers, call_timeout_ms, heartbeat_ms;
    const char *key, *server_key, *allow; /* files of keys; NULL: none */
    bool insecure;
} tg_pool_config;

typedef struct tg_run_config {
    tg_arena arena; /* owns every node and text below */
    tg_node *root;
    const char *file;
    int64_t seed;
    const char *compat; /* NULL or "rl4lms" */
    int64_t workers;
    bool supervised; /* alg.id names supervised training: no env and no reward are needed */
    bool env_only;   /* read for an environment: no alg, train_evaluation and reward are needed */
    tg_learner_config learner;
    tg_pool_config pool;
    /* Section nodes, borrowed from root: maps, or NULL when absent. */
    const tg_node *tokenizer, *reward_fn, *datapool, *env, *alg, *train_evaluation;
    const tg_node *learner_node, *pool_node;
} tg_run_config;

tg_status tg_run_config_load(tg_run_config *out, const char *path, const char *const *overrides,
                             size_t n_overrides, tg_error *err) TG_MUST_CHECK;
/* As load, for an environment that no learner of this config drives. */
tg_status tg_run_config_load_env(tg_run_config *out, const char *path, const char *const *overrides,
                                 size_t n_overrides, tg_error *err) TG_MUST_CHECK;
/* As load, on a tree that was built elsewhere: *arena is taken over (also on failure), root lies in
 * it. */
tg_status tg_run_config_init(tg_run_config *out, tg_arena *arena, tg_node *root,
                             tg_error *err) TG_MUST_CHECK;
void tg_run_config_fini(tg_run_config *c);

/* The whole config as indented JSON (which is YAML), every top-level default explicit. Each of the
 * n_parts maps (what the owners resolved, such as {"alg": {…}, "train_evaluation": {…}}) replaces
 * the section as it was written; a section that two parts give, as they do train_evaluation, is the
 * union of their keys; of a key that both give, the first counts. */
void tg_run_config_json(const tg_run_config *c, const tg_node *const *parts, size_t n_parts,
                        tg_buf *out);

/* "8 GiB", "500M", 1000000: bytes (K, M, G, T are powers of 1024). False: not a size. */
bool tg_parse_size(const char *text, uint64_t *bytes);

#endif
