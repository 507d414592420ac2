/* Replays recorded training iterations and compares every recorded number.
 *
 * A case folder holds recording.json, initial and final weights (safetensors) and sometimes the
 * gradient of the first minibatch. From the initial weights and the recorded episodes everything is
 * computed again: log-probs, values, rewards, KL coefficient, advantages; then the update runs on
 * the recorded buffer in the recorded order, transition by transition. */
#ifndef TG_TEST_REPLAY_H
#define TG_TEST_REPLAY_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "learner/policy/actor_critic.h"
#include "learner/rl/kl.h"
#include "learner/rl/algo.h"
#include "learner/rl/rollout.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct tg_replay_opts {
    const char *backend; /* "cpu" or "ref" */
    const char *only;    /* name of one case, or NULL: all */
    const char *models;  /* folder of the model folders, or NULL: found from the case */
    FILE *out;           /* the table */
} tg_replay_opts;

typedef struct tg_replay_result {
    int cases, passed, failed, skipped; /* passed, failed: numbers compared; skipped: cases */
} tg_replay_result;

/* dir: a folder of cases, or one case. A case that cannot be replayed (bad file, missing tensor)
 * counts as one failure; a case of an algorithm or model that is not built is listed as skipped.
 * TG_NOINPUT: no case there. */
tg_status tg_replay(const char *dir, const tg_replay_opts *opts, tg_replay_result *result,
                    tg_error *err) TG_MUST_CHECK;

/* ---- between the files of the replay ---- */

typedef struct tg_recording {
    const char *dir;
    json_t *root; /* recording.json */
    tg_arena arena;
    const tg_algo_ops *algo;
    void *opts; /* of the algorithm */
    double learning_rate, clip_range, gamma, gae_lambda;
    tg_optim_opts optim;
    tg_kl_controller kl;
    bool norm_reward;
    tg_rollout
        *rollout; /* tokens and task rewards as recorded; the rest is for the replay to fill */
    /* as recorded, per action */
    double *logp, *ref_logp, *entropy, *value, *kl_div, *kl_reward, *total_reward;
    /* as recorded, per row of the buffer */
    double *row_reward, *row_logp, *row_value, *row_adv, *row_ret;
    const int32_t **permutations;
    int n_permutations;
} tg_recording;

tg_status tg_recording_load(tg_recording *rec, const char *dir, tg_error *err) TG_MUST_CHECK;
void tg_recording_close(tg_recording *rec);
/* A value by dotted path, list items by number; NULL with err set when it is not there. */
const json_t *tg_recording_at(const tg_recording *rec, const char *path, tg_error *err);
/* A list of exactly n numbers (null: NaN). */
tg_status tg_recording_numbers(const tg_recording *rec, const json_t *list, const char *what,
                               double *out, size_t n, tg_error *err) TG_MUST_CHECK;
double tg_json_f64(const json_t *v, double missing); /* null: NaN, true: 1 */

/* Networks with the recorded initial weights. */
tg_status tg_recording_networks(tg_recording *rec, tg_backend *be, const char *models,
                                tg_actor_critic **out, tg_error *err) TG_MUST_CHECK;

/* One line of the table for each number compared. */
typedef struct tg_replay_table {
    FILE *out;
    tg_replay_result *result;
} tg_replay_table;
void tg_replay_row(tg_replay_table *t, const char *what, double difference, double tolerance);
void tg_replay_note(tg_replay_table *t, const char *what, const char *text);

/* What the environment and the rollout recorded, and the update. */
tg_status tg_replay_rollout(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                            tg_error *err) TG_MUST_CHECK;
tg_status tg_replay_update(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                           tg_error *err) TG_MUST_CHECK;

/* tg_replay_update's part for TRPO, without the final weights. */
tg_status tg_replay_trpo(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                         tg_error *err) TG_MUST_CHECK;

#endif
