/* What one rollout collected: whole episodes, and per transition ("row") the numbers an update
 * needs.
 *
 * Rows follow the episodes in order of their number; the buffer holds exactly n_rows (n_steps *
 * n_envs), so the last episode may contribute only its first rows; its remaining actions still
 * count in the statistics (as in RL4LMs). */
#ifndef TG_RL_ROLLOUT_H
#define TG_RL_ROLLOUT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_episode {
    uint64_t id;           /* number of the episode within the run: fixes prompt and sampling */
    const int32_t *tokens; /* (n_prompt + n_actions), prompt first; owned by the rollout */
    int n_prompt, n_actions;
    /* rows first_row .. first_row + n_rows - 1 are its first n_rows actions */
    int first_row, n_rows;
    int first_action; /* index of its first action in the per-action arrays */
    bool terminated, truncated;
} tg_episode;

typedef struct tg_rollout {
    tg_episode *episodes;
    int n_episodes;
    int n_actions; /* of all episodes */
    int n_rows;    /* in the buffer */
    /* seq2seq: what the decoder reads first, and prompts are its source; -1: causal */
    int32_t start_id;
    /* per action (n_actions), episode by episode */
    float *logp, *ref_logp, *entropy, *value;
    /* logp and value are there, from generation: scoring leaves them, and entropy, alone */
    bool known;
    double *task_reward, *kl_reward;
    /* (n_actions, mask_words): the tokens each action was drawn from (common/nn/pass.h), or NULL */
    uint32_t *masks;
    int mask_words;
    /* per row (n_rows): what the update reads */
    float *row_logp, *row_value, *row_reward, *adv, *ret;
    int32_t *row_episode;     /* index into episodes */
    unsigned char *row_start; /* 1: first action of its episode */
    float last_value; /* value of the state after the last row, 0 when its episode ended there */
    bool last_done;
    void *block; /* private: owns everything above */
} tg_rollout;

/* Room for the episodes of a finished generation phase; the caller fills tokens and the per-action
 * arrays. `lengths` are (n_prompt, n_actions) pairs, each at least 1 (else TG_DATA). rows_wanted:
 * size of the buffer; TG_BUG if the episodes have fewer actions. Episode ids start as 0 ..
 * n_episodes - 1. */
tg_status tg_rollout_create(tg_rollout **out, const int (*lengths)[2], int n_episodes,
                            int rows_wanted, tg_error *err) TG_MUST_CHECK;
void tg_rollout_destroy(tg_rollout **r);
/* Room for masks over that many tokens, all forbidden until the caller fills them. */
tg_status tg_rollout_add_masks(tg_rollout *r, int mask_words, tg_error *err) TG_MUST_CHECK;
/* Writable view of an episode's tokens while it is being filled. */
int32_t *tg_rollout_tokens(tg_rollout *r, int episode);

/* kl_reward = -coeff * (logp - ref_logp) of every action; returns the mean of logp - ref_logp, for
 * the KL controller. */
double tg_rollout_kl(tg_rollout *r, double coeff);

/* From the per-action arrays: row_reward = task + kl reward (optionally normalised over the buffer:
 * mean, population std + 1e-8), row_logp, row_value, last_value, then GAE into adv and ret. */
typedef struct tg_returns_opts {
    double gamma, gae_lambda;
    bool norm_reward;
} tg_returns_opts;
void tg_rollout_finish(tg_rollout *r, const tg_returns_opts *opts);

/* What rollout_info.jsonl says of one rollout, over all episodes (those outside the buffer too), in
 * RL4LMs's names and order: mean and population standard deviation of ep_rew, kl_div_mean, ep_lens,
 * ep_kl_rew, log_prob, ref_log_prob, values; kl_coeff. */
enum { TG_ROLLOUT_SUMMARY_N = 15 };
typedef struct tg_rollout_summary {
    const char *name[TG_ROLLOUT_SUMMARY_N]; /* static strings */
    double value[TG_ROLLOUT_SUMMARY_N];
} tg_rollout_summary;
void tg_rollout_summarise(const tg_rollout *r, double kl_coeff, tg_rollout_summary *out);

#endif
