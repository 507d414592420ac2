/* Proximal policy optimisation (Schulman et al. 2017, algorithm 1) on token transitions, with RL4LMs's
 * defaults and order of steps: for each epoch, for each minibatch, a step of the optimizer on
 *
 *     -L^CLIP + vf_coef L^VF - ent_coef H            (eq. 9; L^CLIP is eq. 7; both in loss.c)
 *
 * with the advantages of eq. 11 (gae.c). NLPO is the same update on masked distributions. */
#include "learner/rl/ppo.h"

#include "common/base/check.h"
#include "learner/rl/descent.h"

#define O tg_ppo_opts

const tg_opt tg_ppo_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "3e-4", 0, 1e3, "Step size of the optimizer."),
    TG_OPT_INT(O, n_steps, "2048", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_INT(O, batch_size, "64", 1, 1e8, "Transitions of one minibatch."),
    TG_OPT_INT(O, n_epochs, "10", 1, 1e6, "Passes over the transitions of one iteration."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_FLOAT(O, gae_lambda, "0.95", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_FLOAT(O, clip_range, "0.2", 0, 1e6,
                 "How far the probability ratio may leave 1 before its gradient ends."),
    TG_OPT_FLOAT_OR_NULL(O, clip_range_vf, 0, 1e6,
                         "How far a value may leave the recorded one; null: not limited."),
    TG_OPT_BOOL(O, normalize_advantage, "true",
                "Advantages to mean 0 and deviation 1 within each minibatch."),
    TG_OPT_FLOAT(O, ent_coef, "0.0", -1e6, 1e6, "Weight of the entropy bonus."),
    TG_OPT_FLOAT(O, vf_coef, "0.5", 0, 1e6, "Weight of the value loss."),
    TG_OPT_FLOAT(O, max_grad_norm, "0.5", 0, 1e12,
                 "Gradients are scaled down to this norm over all networks; 0: not."),
    TG_OPT_FLOAT_OR_NULL(
        O, target_kl, 0, 1e6,
        "The update ends early when approx_kl exceeds 1.5 times this; null: never."),
    TG_OPT_STR_ONE_OF(O, minibatch, "sequence", "sequence|transition",
                      "Whole episodes, each token computed once a pass; or single transitions, as "
                      "RL4LMs samples them."),
    TG_OPT_INT(O, microbatch_tokens, "512", 1, 1e8,
               "A minibatch of more tokens is computed in pieces: the same gradient, less memory."),
    TG_RL_SCHEDULE_ROWS(O),
    TG_OPT_STR_ONE_OF(O, clip_range_schedule, "constant", "constant|linear|cosine",
                      "How clip_range changes over the iterations."),
    TG_RL_IGNORED_ROWS(O),
    TG_OPT_END,
};

void tg_ppo_plan(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out) {
    const tg_ppo_opts *o = opts;
    int64_t rows = TG_MIN(o->n_steps * n_envs, (int64_t)1 << 30);
    *out = (tg_algo_plan){.n_steps = (int)o->n_steps,
                          .gamma = o->gamma,
                          .gae_lambda = o->gae_lambda,
                          .caps = tg_minibatch_caps((int)TG_MIN(o->batch_size, rows), (int)rows,
                                                    max_sequence, (int)o->microbatch_tokens),
                          .epochs = (int)o->n_epochs,
                          .batch_size = (int)TG_MIN(o->batch_size, rows),
                          .mode = tg_minibatch_mode_find(o->minibatch)};
}

/* The stats of an update in RL4LMs's names, and ours. */
static void report_stats(const tg_descent *d, int epochs) {
    tg_update_stats *s = d->stats;
    const tg_descent_tally *t = &d->tally;
    tg_stats_put(s, "ppo/entropy_loss", t->entropy / t->n);
    tg_stats_put(s, "ppo/policy_gradient_loss", t->policy / t->n);
    tg_stats_put(s, "ppo/value_loss", t->value / t->n);
    tg_stats_put(s, "ppo/approx_kl", t->kl / t->n_epoch);
    tg_stats_put(s, "ppo/explained_variance",
                 tg_explained_variance(d->r->row_value, d->r->ret, d->r->n_rows));
    tg_stats_put(s, "ppo/loss", t->loss / t->n);
    tg_stats_put(s, "ppo/clip_fraction", t->clip / t->n);
    tg_stats_put(s, "ppo/grad_norm", t->norm / t->n_norm);
    tg_stats_put(s, "ppo/epochs", epochs);
    tg_stats_put(s, "ppo/minibatches", s->minibatches);
    tg_stats_put(s, "ppo/skipped_minibatches", s->skipped);
}

static tg_status ppo_update(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                            const tg_order *order, const tg_update_probe *probe,
                            tg_update_stats *stats, tg_error *err) {
    const tg_ppo_opts *o = opts;
    tg_descent_opts how = {
        .name = "ppo",
        .loss = tg_ppo_loss,
        .coefs = {.clip_range = tg_scheduled(o->clip_range_schedule, o->clip_range, 0, order),
                  .clip_range_vf = o->clip_range_vf,
                  .ent_coef = o->ent_coef,
                  .vf_coef = o->vf_coef},
        .mode = tg_minibatch_mode_find(o->minibatch),
        .batch_size = o->batch_size,
        .normalize_advantage = o->normalize_advantage,
        .learning_rate =
            tg_scheduled(o->lr_scheduler_type, o->learning_rate, o->warmup_iters, order),
        .max_grad_norm = o->max_grad_norm,
        .target_kl = o->target_kl};
    tg_descent d;
    tg_status st = tg_descent_open(&d, ac, r, &how, probe, stats, err);
    int epoch = 0;
    for (; st == TG_OK && epoch < o->n_epochs && !stats->stopped; epoch++)
        st = tg_descent_epoch(&d, order, epoch, err);
    if (st == TG_OK) report_stats(&d, epoch);
    tg_descent_close(&d);
    return st;
}

const tg_algo_ops tg_algo_ppo = {
    .name = "ppo",
    .summary = "Proximal policy optimisation with a clipped surrogate objective and a KL reward.",
    .options = tg_ppo_options,
    .options_size = sizeof(tg_ppo_opts),
    .plan = tg_ppo_plan,
    .update = ppo_update,
};
