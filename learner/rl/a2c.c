/* Advantage actor-critic (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning",
 * section 4, with synchronous environments): one gradient step on the whole rollout,
 *
 *     d/dtheta  mean [ -log pi(a_t|s_t) A_t + vf_coef (R_t - V(s_t))^2 - ent_coef H(pi(s_t)) ]
 *
 * with RL4LMs's defaults: RMSprop, advantages not normalised, gae_lambda 1. */
#include "learner/rl/a2c.h"

#include "common/base/check.h"
#include "learner/rl/descent.h"

#include <math.h>

#define O tg_a2c_opts

const tg_opt tg_a2c_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "7e-4", 0, 1e3, "Step size of the optimizer."),
    TG_OPT_INT(O, n_steps, "5", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_FLOAT(O, gae_lambda, "1.0", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_FLOAT(O, ent_coef, "0.0", -1e6, 1e6, "Weight of the entropy bonus."),
    TG_OPT_FLOAT(O, vf_coef, "0.5", 0, 1e6, "Weight of the value loss."),
    TG_OPT_FLOAT(O, max_grad_norm, "0.5", 0, 1e12,
                 "Gradients are scaled down to this norm; 0: not."),
    TG_OPT_FLOAT(O, rms_prop_eps, "1e-5", TG_OPTIM_EPS_MIN, 1, "Added to the root of RMSprop."),
    TG_OPT_BOOL(O, use_rms_prop, "true", "RMSprop instead of the policy's optimizer."),
    TG_OPT_BOOL(O, normalize_advantage, "false", "Advantages to mean 0 and deviation 1."),
    TG_OPT_INT(O, microbatch_tokens, "512", 1, 1e8,
               "A rollout of more tokens is computed in pieces: the same gradient, less memory."),
    TG_OPT_STR_ONE_OF(O, minibatch, "sequence", "sequence|transition",
                      "Order of the rows: by episodes, or as RL4LMs draws them."),
    TG_RL_SCHEDULE_ROWS(O),
    TG_RL_IGNORED_ROWS(O),
    TG_OPT_END,
};

/* The weight decay stays that of the policy's parameter groups, as in RL4LMs. */
static void optimizer(const void *opts, tg_optim_opts *optim) {
    const tg_a2c_opts *o = opts;
    if (!o->use_rms_prop) return;
    *optim = (tg_optim_opts){.kind = "rmsprop",
                             .alpha = 0.99,
                             .eps = o->rms_prop_eps,
                             .weight_decay = optim->weight_decay,
                             .decay = optim->decay};
}

static void plan(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out) {
    const tg_a2c_opts *o = opts;
    int rows = (int)TG_MIN(o->n_steps * n_envs, (int64_t)1 << 30);
    *out = (tg_algo_plan){
        .n_steps = (int)o->n_steps,
        .gamma = o->gamma,
        .gae_lambda = o->gae_lambda,
        .caps = tg_minibatch_caps(rows, rows, max_sequence, (int)o->microbatch_tokens),
        .epochs = 1,
        .batch_size = rows,
        .mode = tg_minibatch_mode_find(o->minibatch)};
}

/* RL4LMs's A2C names its numbers after PPO: so do we. */
static void report_stats(const tg_descent *d) {
    tg_update_stats *s = d->stats;
    const tg_descent_tally *t = &d->tally;
    tg_stats_put(s, "ppo/entropy_loss", t->entropy / t->n);
    tg_stats_put(s, "ppo/policy_gradient_loss", t->policy / t->n);
    tg_stats_put(s, "ppo/value_loss", t->value / t->n);
    tg_stats_put(s, "ppo/explained_variance",
                 tg_explained_variance(d->r->row_value, d->r->ret, d->r->n_rows));
    tg_stats_put(s, "ppo/loss", t->loss / t->n);
    tg_stats_put(s, "ppo/grad_norm", t->norm / t->n_norm);
    tg_stats_put(s, "ppo/skipped_minibatches", s->skipped);
}

static tg_status a2c_update(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                            const tg_order *order, const tg_update_probe *probe,
                            tg_update_stats *stats, tg_error *err) {
    const tg_a2c_opts *o = opts;
    tg_descent_opts how = {
        .name = "a2c",
        .loss = tg_a2c_loss,
        .coefs = {.clip_range_vf = (double)NAN, .ent_coef = o->ent_coef, .vf_coef = o->vf_coef},
        .mode = tg_minibatch_mode_find(o->minibatch),
        .batch_size = r->n_rows,
        .normalize_advantage = o->normalize_advantage,
        .learning_rate =
            tg_scheduled(o->lr_scheduler_type, o->learning_rate, o->warmup_iters, order),
        .max_grad_norm = o->max_grad_norm,
        .target_kl = (double)NAN};
    tg_descent d;
    tg_status st = tg_descent_open(&d, ac, r, &how, probe, stats, err);
    if (st == TG_OK) st = tg_descent_epoch(&d, order, 0, err);
    if (st == TG_OK) report_stats(&d);
    tg_descent_close(&d);
    return st;
}

const tg_algo_ops tg_algo_a2c = {
    .name = "a2c",
    .summary = "Advantage actor-critic: one step on the whole rollout.",
    .options = tg_a2c_options,
    .options_size = sizeof(tg_a2c_opts),
    .optimizer = optimizer,
    .plan = plan,
    .update = a2c_update,
};
