/* Trust region policy optimisation (Schulman et al. 2015) with RL4LMs's and sb3-contrib's defaults and order of steps: one step of the
 * policy on the whole rollout (trust_region.c), then passes of the critic's optimizer over minibatches of mean (R_t - V(s_t))^2. */
#include "learner/rl/trpo.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "learner/rl/descent.h"
#include "learner/rl/trust_region.h"

#include <math.h>

#define O tg_trpo_opts

const tg_opt tg_trpo_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "1e-3", 0, 1e3, "Step size of the critic's optimizer."),
    TG_OPT_INT(O, n_steps, "2048", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_INT(O, batch_size, "128", 1, 1e8, "Transitions of one minibatch of the critic."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_INT(O, cg_max_steps, "15", 1, 1e6, "Most steps of the conjugate gradient."),
    TG_OPT_FLOAT(O, cg_damping, "0.1", 0, 1e6, "Added to the diagonal of the Fisher matrix."),
    TG_OPT_FLOAT(O, line_search_shrinking_factor, "0.8", 0, 1,
                 "The step shrinks by this until it is accepted."),
    TG_OPT_INT(O, line_search_max_iter, "10", 1, 1e6, "Most trials of the line search."),
    TG_OPT_INT(O, n_critic_updates, "10", 0, 1e6, "Passes of the critic over the transitions."),
    TG_OPT_FLOAT(O, gae_lambda, "0.95", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_BOOL(O, normalize_advantage, "true", "Advantages to mean 0 and deviation 1."),
    TG_OPT_FLOAT(O, target_kl, "0.01", 0, 1e6, "The trust region: most KL of one step."),
    TG_OPT_INT(O, sub_sampling_factor, "1", 1, 1e6,
               "The policy's step uses one n-th of the transitions, drawn anew each time."),
    TG_OPT_STR_ONE_OF(O, minibatch, "sequence", "sequence|transition",
                      "Whole episodes, each token computed once a pass; or single transitions, as "
                      "RL4LMs samples them."),
    TG_OPT_INT(O, microbatch_tokens, "512", 1, 1e8,
               "A minibatch of more tokens is computed in pieces: the same step, less memory."),
    TG_RL_SCHEDULE_ROWS(O),
    TG_RL_IGNORED_ROWS(O),
    TG_OPT_END,
};

static void plan(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out) {
    const tg_trpo_opts *o = opts;
    int rows = (int)TG_MIN(o->n_steps * n_envs, (int64_t)1 << 30);
    *out = (tg_algo_plan){
        .n_steps = (int)o->n_steps,
        .gamma = o->gamma,
        .gae_lambda = o->gae_lambda,
        .caps = tg_minibatch_caps(rows, rows, max_sequence, (int)o->microbatch_tokens),
        .epochs = (int)o->n_critic_updates + 1,
        .batch_size = (int)TG_MIN(o->batch_size, rows),
        .first_share = (int)o->sub_sampling_factor,
        .mode = tg_minibatch_mode_find(o->minibatch)};
}

/* ---- the policy ---- */

/* Where the conjugate gradient starts: 1e-4 times normal numbers, because from 0 a vanishing gradient would divide by 0. */
static void starting_point(const tg_actor_critic *ac, const tg_order *order, float *x) {
    const tg_params *params = &ac->policy->params;
    tg_rng rng = tg_rng_at(order->seed, TG_RNG_SEARCH, order->iteration, 0);
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        for (size_t k = 0; k < p->count && p->grad_offset != TG_PARAM_FROZEN; k++)
            x[p->grad_offset + k] =
                (float)(1e-4 * (order->noise ? (double)order->noise[p->grad_offset + k]
                                             : tg_rng_normal(&rng)));
    }
}

static tg_status step_policy(tg_actor_critic *ac, const tg_trpo_opts *o, const tg_rollout *r,
                             const tg_order *order, const tg_update_probe *probe,
                             tg_trust_region_result *result, tg_error *err) {
    tg_trust_region_opts how = {.cg_steps = (int)o->cg_max_steps,
                                .damping = o->cg_damping,
                                .target_kl = o->target_kl,
                                .shrink = o->line_search_shrinking_factor,
                                .max_trials = (int)o->line_search_max_iter,
                                .normalize_advantage = o->normalize_advantage};
    tg_trust_region t = {0};
    tg_minibatches *mb = NULL;
    tg_minibatch_mode mode = tg_minibatch_mode_find(o->minibatch);
    tg_status st =
        tg_minibatches_draw(&mb, r, mode, (int)o->sub_sampling_factor, ac->caps, order, err);
    if (st == TG_OK) {
        st = tg_trust_region_open(&t, ac, r, mb, &how, err);
        if (st == TG_OK) starting_point(ac, order, t.x);
        if (st == TG_OK) st = tg_trust_region_step(&t, probe, result, err);
        tg_trust_region_close(&t);
    }
    tg_minibatches_destroy(&mb);
    return st;
}

/* ---- the critic ---- */

typedef struct critic {
    tg_actor_critic *ac;
    const tg_rollout *r;
    tg_minibatches *mb;
    const tg_update_probe *probe;
    float *value, *grad, *of_batch; /* (caps.actions), (caps.actions), (n_rows) */
    double rate, loss;              /* sum over the minibatches */
    int n;
} critic;

static tg_status critic_piece(critic *c, const int32_t *rows, int total,
                              const tg_minibatch_piece *p, double *loss, tg_error *err) {
    tg_status st = tg_actor_critic_values(c->ac, &p->batch, c->value, err);
    if (st != TG_OK) return st;
    for (int i = 0; i < p->batch.n_actions; i++) {
        double miss = (double)c->value[i] - (double)c->r->ret[rows[p->place[i]]];
        *loss += miss * miss / total;
        c->grad[i] = (float)(2 * miss / total);
        c->of_batch[p->place[i]] = c->value[i];
    }
    return tg_actor_critic_values_backward(c->ac, c->grad, err);
}

static tg_status critic_step(critic *c, int pass, int k, tg_update_stats *stats, tg_error *err) {
    const int32_t *rows = c->mb->rows + c->mb->first[k];
    int n = c->mb->first[k + 1] - c->mb->first[k];
    double loss = 0, norm;
    tg_minibatch_piece piece;
    tg_status st = tg_minibatches_pack(c->mb, k, err);
    while (st == TG_OK && tg_minibatches_next(c->mb, &piece))
        st = critic_piece(c, rows, n, &piece, &loss, err);
    if (st != TG_OK) return st;
    if (c->probe && c->probe->minibatch)
        c->probe->minibatch(c->probe->arg, &(tg_minibatch_report){.epoch = pass,
                                                                  .batch = k,
                                                                  .n = n,
                                                                  .rows = rows,
                                                                  .value = c->of_batch,
                                                                  .value_loss = loss});
    bool applied = isfinite(loss);
    if (applied)
        st = tg_actor_critic_apply(c->ac, c->rate, 0, &norm, &applied, err);
    else
        tg_optim_clear(c->ac->optim);
    if (!applied) {
        stats->skipped++;
        tg_log_warn("trpo", "critic, pass %d, minibatch %d: not finite; nothing of it is applied",
                    pass, k);
        return st;
    }
    c->loss += loss;
    c->n++;
    stats->minibatches++;
    return st;
}

static tg_status train_critic(critic *c, const tg_trpo_opts *o, const tg_order *order,
                              tg_update_stats *stats, tg_error *err) {
    size_t a = (size_t)c->ac->caps.actions, n = (size_t)c->r->n_rows;
    c->value = tg_alloc_array(2 * a + n, sizeof(float));
    if (!c->value) return tg_fail_nomem(err, (2 * a + n) * sizeof(float));
    c->grad = c->value + a;
    c->of_batch = c->grad + a;
    int batch_size = (int)TG_MIN(o->batch_size, (int64_t)c->r->n_rows);
    tg_status st = tg_minibatches_create(&c->mb, c->r, tg_minibatch_mode_find(o->minibatch),
                                         batch_size, c->ac->caps, err);
    for (int pass = 0; st == TG_OK && pass < o->n_critic_updates; pass++) {
        st = tg_minibatches_shuffle(c->mb, order, pass + 1, err); /* 0 was the policy's */
        for (int k = 0; st == TG_OK && k < c->mb->n; k++) st = critic_step(c, pass, k, stats, err);
    }
    if (st != TG_OK) tg_optim_clear(c->ac->optim);
    tg_minibatches_destroy(&c->mb);
    tg_free(c->value);
    return st;
}

/* ---- the update ---- */

static tg_status trpo_update(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                             const tg_order *order, const tg_update_probe *probe,
                             tg_update_stats *stats, tg_error *err) {
    const tg_trpo_opts *o = opts;
    *stats =
        (tg_update_stats){.first_ratio_error = (double)NAN, .first_clip_fraction = (double)NAN};
    tg_trust_region_result step;
    critic c = {.ac = ac,
                .r = r,
                .probe = probe,
                .rate =
                    tg_scheduled(o->lr_scheduler_type, o->learning_rate, o->warmup_iters, order)};
    tg_status st = step_policy(ac, o, r, order, probe, &step, err);
    if (st == TG_OK && !step.finite) {
        stats->skipped++;
        tg_log_warn("trpo", "the policy's step is not finite; nothing of it is applied");
    }
    if (st == TG_OK) st = train_critic(&c, o, order, stats, err);
    if (st != TG_OK) return st;
    tg_stats_put(stats, "trpo/policy_objective", step.objective);
    tg_stats_put(stats, "trpo/value_loss", c.loss / c.n);
    tg_stats_put(stats, "trpo/kl_divergence_loss", step.kl);
    tg_stats_put(stats, "trpo/explained_variance",
                 tg_explained_variance(r->row_value, r->ret, r->n_rows));
    tg_stats_put(stats, "trpo/is_line_search_success", step.success);
    tg_stats_put(stats, "trpo/line_search_trials", step.trials);
    tg_stats_put(stats, "trpo/skipped_minibatches", stats->skipped);
    return TG_OK;
}

const tg_algo_ops tg_algo_trpo = {
    .name = "trpo",
    .summary = "Trust region policy optimisation: natural gradient with a line search.",
    .options = tg_trpo_options,
    .options_size = sizeof(tg_trpo_opts),
    .critic_only = true,
    .plan = plan,
    .workspace = tg_trust_region_bytes,
    .update = trpo_update,
};
