/* Storage of a rollout and what follows from its numbers alone: KL reward, buffer rows, returns.
 *
 * Invariant: rows are the first n_rows actions in episode order, so row i and action i are the same
 * transition. */
#include "learner/rl/rollout.h"

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/check.h"
#include "learner/rl/gae.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static bool alloc_arrays(tg_rollout *r, tg_arena *a, size_t tokens) {
    size_t n = (size_t)r->n_actions, rows = (size_t)r->n_rows;
    float **per_action[] = {&r->logp, &r->ref_logp, &r->entropy, &r->value};
    float **per_row[] = {&r->row_logp, &r->row_value, &r->row_reward, &r->adv, &r->ret};
    for (size_t i = 0; i < TG_COUNT_OF(per_action); i++)
        if (!(*per_action[i] = tg_arena_array(a, n, sizeof(float)))) return false;
    for (size_t i = 0; i < TG_COUNT_OF(per_row); i++)
        if (!(*per_row[i] = tg_arena_array(a, rows, sizeof(float)))) return false;
    r->task_reward = tg_arena_array(a, n, sizeof(double));
    r->kl_reward = tg_arena_array(a, n, sizeof(double));
    r->row_episode = tg_arena_array(a, rows, sizeof(int32_t));
    r->row_start = tg_arena_array(a, rows, 1);
    r->episodes = tg_arena_array(a, (size_t)r->n_episodes, sizeof(tg_episode));
    int32_t *all = tg_arena_array(a, tokens, sizeof(int32_t));
    if (!r->task_reward || !r->kl_reward || !r->row_episode || !r->row_start || !r->episodes ||
        !all)
        return false;
    r->episodes[0].tokens = all;
    return true;
}

static void lay_out_episodes(tg_rollout *r, const int (*lengths)[2]) {
    const int32_t *tokens = r->episodes[0].tokens;
    int action = 0;
    for (int i = 0; i < r->n_episodes; i++) {
        tg_episode *e = &r->episodes[i];
        int left = r->n_rows - action;
        *e = (tg_episode){.id = (uint64_t)i,
                          .tokens = tokens,
                          .n_prompt = lengths[i][0],
                          .n_actions = lengths[i][1],
                          .first_row = TG_MIN(action, r->n_rows),
                          .n_rows = left <= 0 ? 0 : TG_MIN(left, lengths[i][1]),
                          .first_action = action};
        for (int k = 0; k < e->n_rows; k++) {
            r->row_episode[e->first_row + k] = i;
            r->row_start[e->first_row + k] = k == 0;
        }
        tokens += e->n_prompt + e->n_actions;
        action += e->n_actions;
    }
}

tg_status tg_rollout_create(tg_rollout **out, const int (*lengths)[2], int n_episodes,
                            int rows_wanted, tg_error *err) {
    *out = NULL;
    size_t actions = 0, tokens = 0;
    for (int i = 0; i < n_episodes; i++) {
        if (lengths[i][0] < 1 || lengths[i][1] < 1)
            return tg_fail(
                err, TG_DATA,
                "episode %d has %d prompt tokens and %d actions: at least 1 of each is needed", i,
                lengths[i][0], lengths[i][1]);
        actions += (size_t)lengths[i][1];
        tokens += (size_t)lengths[i][0] + (size_t)lengths[i][1];
    }
    if (actions > INT_MAX || tokens > INT_MAX)
        return tg_fail(err, TG_DATA, "a rollout of %zu tokens is too large", tokens);
    if (n_episodes < 1 || rows_wanted < 1 || actions < (size_t)rows_wanted)
        return tg_fail(err, TG_BUG, "%d episodes with %zu actions cannot fill a buffer of %d rows",
                       n_episodes, actions, rows_wanted);
    tg_rollout *r = tg_alloc(sizeof *r);
    tg_arena *a = tg_alloc(sizeof *a);
    if (r && a) {
        *r = (tg_rollout){.start_id = -1,
                          .n_episodes = n_episodes,
                          .n_actions = (int)actions,
                          .n_rows = rows_wanted,
                          .block = a};
        if (alloc_arrays(r, a, tokens)) {
            lay_out_episodes(r, lengths);
            *out = r;
            return TG_OK;
        }
        tg_arena_fini(a);
    }
    tg_free(r);
    tg_free(a);
    return tg_fail_nomem(err, actions * 40 + tokens * sizeof(int32_t));
}

void tg_rollout_destroy(tg_rollout **r) {
    if (!*r) return;
    tg_arena_fini((*r)->block);
    tg_free((*r)->block);
    tg_free(*r);
    *r = NULL;
}

tg_status tg_rollout_add_masks(tg_rollout *r, int mask_words, tg_error *err) {
    size_t n = (size_t)r->n_actions * (size_t)mask_words;
    r->masks = tg_arena_array(r->block, n, sizeof *r->masks);
    if (!r->masks) return tg_fail_nomem(err, n * sizeof *r->masks);
    r->mask_words = mask_words;
    return TG_OK;
}

int32_t *tg_rollout_tokens(tg_rollout *r, int episode) {
    return (int32_t *)r->episodes[episode].tokens; /* the block is ours and writable */
}

double tg_rollout_kl(tg_rollout *r, double coeff) {
    double sum = 0;
    for (int i = 0; i < r->n_actions; i++) {
        double kl = (double)r->logp[i] - (double)r->ref_logp[i];
        r->kl_reward[i] = -coeff * kl;
        sum += kl;
    }
    return sum / r->n_actions;
}

static void normalise(float *x, int n) {
    double mean = 0, var = 0;
    for (int i = 0; i < n; i++) mean += (double)x[i];
    mean /= n;
    for (int i = 0; i < n; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1 / (sqrt(var / n) + 1e-8);
    for (int i = 0; i < n; i++) x[i] = (float)(((double)x[i] - mean) * scale);
}

void tg_rollout_finish(tg_rollout *r, const tg_returns_opts *opts) {
    for (int i = 0; i < r->n_rows; i++) {
        r->row_logp[i] = r->logp[i];
        r->row_value[i] = r->value[i];
        r->row_reward[i] = (float)(r->task_reward[i] + r->kl_reward[i]);
    }
    if (opts->norm_reward) normalise(r->row_reward, r->n_rows);
    const tg_episode *last = &r->episodes[r->row_episode[r->n_rows - 1]];
    r->last_done = last->n_rows == last->n_actions;
    r->last_value = r->last_done ? 0 : r->value[r->n_rows];
    tg_gae(r->adv, r->ret, r->row_reward, r->row_value, r->row_start, r->n_rows, r->last_value,
           r->last_done, opts->gamma, opts->gae_lambda);
}

/* ---- statistics ---- */

typedef struct moments { /* Welford's running mean and sum of squared deviations */
    double n, mean, m2;
} moments;

static void add(moments *m, double x) {
    double d = x - m->mean;
    m->n += 1;
    m->mean += d / m->n;
    m->m2 += d * (x - m->mean);
}

void tg_rollout_summarise(const tg_rollout *r, double kl_coeff, tg_rollout_summary *out) {
    enum { REW, KL, LEN, KL_REW, LOGP, REF, VALUE, KINDS };
    static const char *const names[KINDS][2] = {
        {"rollout_info/ep_rew", "rollout_info/ep_rew_std"},
        {"rollout_info/kl_div_mean", "rollout_info/kl_div_mean_std"},
        {"rollout_info/ep_lens", "rollout_info/ep_lens_std"},
        {"rollout_info/ep_kl_rew", "rollout_info/ep_kl_rew_std"},
        {"rollout_info/log_prob", "rollout_info/log_prob_std"},
        {"rollout_info/ref_log_prob", "rollout_info/ref_log_prob_std"},
        {"rollout_info/values", "rollout_info/values_std"},
    };
    moments m[KINDS] = {{0}};
    for (int e = 0; e < r->n_episodes; e++) {
        const tg_episode *ep = &r->episodes[e];
        double rew = 0, kl_rew = 0;
        for (int i = ep->first_action; i < ep->first_action + ep->n_actions; i++) {
            rew += r->task_reward[i];
            kl_rew += r->kl_reward[i];
            add(&m[KL], (double)r->logp[i] - (double)r->ref_logp[i]);
            add(&m[LOGP], (double)r->logp[i]);
            add(&m[REF], (double)r->ref_logp[i]);
            add(&m[VALUE], (double)r->value[i]);
        }
        add(&m[REW], rew);
        add(&m[KL_REW], kl_rew);
        add(&m[LEN], ep->n_actions);
    }
    for (int k = 0; k < KINDS; k++) {
        out->name[2 * k] = names[k][0];
        out->value[2 * k] = m[k].mean;
        out->name[2 * k + 1] = names[k][1];
        out->value[2 * k + 1] = sqrt(m[k].m2 / m[k].n);
    }
    out->name[2 * KINDS] = "rollout_info/kl_coeff";
    out->value[2 * KINDS] = kl_coeff;
}
