/* Proximal policy optimisation (Schulman et al. 2017, algorithm 1) on token transitions, with
 * RL4LMs's defaults and order of steps.
 *
 * Invariant: weights change only in tg_actor_critic_apply, once per minibatch, and never by a loss
 * or gradient that is not finite. */
#include "learner/rl/ppo.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "learner/rl/ppo_loss.h"

#include <math.h>
#include <string.h>

#define O tg_ppo_opts
#define NULLABLE(f, lo, hi, h) TG_OPT_ROW(O, f, TG_T_FLOAT, TG_OPT_NULLABLE, NULL, lo, hi, NULL, h)
#define IGNORED(f, T, d, h) TG_OPT_ROW(O, f, T, TG_OPT_NULLABLE | TG_OPT_IGNORED, d, 0, 0, NULL, h)

const tg_opt tg_ppo_options[] = {
    TG_OPT_FLOAT(O, learning_rate, "3e-4", 0, 1e3, "Step size of the optimizer."),
    TG_OPT_INT(O, n_steps, "2048", 1, 1e8, "Transitions of one iteration, per environment."),
    TG_OPT_INT(O, batch_size, "64", 1, 1e8, "Transitions of one minibatch."),
    TG_OPT_INT(O, n_epochs, "10", 1, 1e6, "Passes over the transitions of one iteration."),
    TG_OPT_FLOAT(O, gamma, "0.99", 0, 1, "Discount of later rewards."),
    TG_OPT_FLOAT(O, gae_lambda, "0.95", 0, 1, "Bias against variance of the advantage (GAE)."),
    TG_OPT_FLOAT(O, clip_range, "0.2", 0, 1e6,
                 "How far the probability ratio may leave 1 before its gradient ends."),
    NULLABLE(clip_range_vf, 0, 1e6,
             "How far a value may leave the recorded one; null: not limited."),
    TG_OPT_BOOL(O, normalize_advantage, "true",
                "Advantages to mean 0 and deviation 1 within each minibatch."),
    TG_OPT_FLOAT(O, ent_coef, "0.0", -1e6, 1e6, "Weight of the entropy bonus."),
    TG_OPT_FLOAT(O, vf_coef, "0.5", 0, 1e6, "Weight of the value loss."),
    TG_OPT_FLOAT(O, max_grad_norm, "0.5", 0, 1e12,
                 "Gradients are scaled down to this norm over all networks; 0: not."),
    NULLABLE(target_kl, 0, 1e6,
             "The update ends early when approx_kl exceeds 1.5 times this; null: never."),
    TG_OPT_STR_ONE_OF(O, minibatch, "sequence", "sequence|transition",
                      "Whole episodes, each token computed once a pass; or single transitions, as "
                      "RL4LMs samples them."),
    TG_OPT_INT(O, microbatch_tokens, "2048", 1, 1e8,
               "A minibatch of more tokens is computed in pieces: the same gradient, less memory."),
    IGNORED(use_sde, TG_T_BOOL, "false",
            "No effect: state-dependent exploration is for continuous actions."),
    IGNORED(sde_sample_freq, TG_T_INT, "-1", "No effect, as use_sde."),
    IGNORED(create_eval_env, TG_T_BOOL, "false",
            "No effect: evaluation is set by train_evaluation."),
    IGNORED(verbose, TG_T_INT, "0", "No effect: TEXTGEN_LOG sets what is logged."),
    IGNORED(seed, TG_T_INT, NULL, "No effect: the top-level key `seed` fixes all random numbers."),
    IGNORED(device, TG_T_STR, "auto", "No effect: the backend decides where networks live."),
    IGNORED(tensorboard_log, TG_T_STR, NULL, "No effect: trackers write into the run folder."),
    IGNORED(policy_kwargs, TG_T_NODE, NULL, "No effect: alg.policy.args describes the policy."),
    TG_OPT_END,
};

static void plan(const void *opts, int n_envs, int max_sequence, tg_algo_plan *out) {
    const tg_ppo_opts *o = opts;
    int64_t rows = TG_MIN(o->n_steps * n_envs, (int64_t)1 << 30);
    *out = (tg_algo_plan){.n_steps = (int)o->n_steps,
                          .gamma = o->gamma,
                          .gae_lambda = o->gae_lambda,
                          .caps = tg_minibatch_caps((int)TG_MIN(o->batch_size, rows), (int)rows,
                                                    max_sequence, (int)o->microbatch_tokens)};
}

/* ---- one minibatch ---- */

typedef struct scratch { /* each array has room for the largest minibatch or piece */
    float *adv, *logp, *entropy, *value; /* of the minibatch, in its order */
    float *piece[7];                     /* of a piece, in its order: what the loss reads and */
    float *grad[3];                      /* what it gives */
    float *block;
} scratch;

static tg_status scratch_init(scratch *s, int n_rows, int n_actions, tg_error *err) {
    size_t n = (size_t)n_rows, a = (size_t)n_actions;
    s->block = tg_alloc_array(4 * n + 10 * a, sizeof(float));
    if (!s->block) return tg_fail_nomem(err, (4 * n + 10 * a) * sizeof(float));
    float *p = s->block;
    float **of_rows[] = {&s->adv, &s->logp, &s->entropy, &s->value};
    for (size_t i = 0; i < TG_COUNT_OF(of_rows); i++, p += n) *of_rows[i] = p;
    for (int i = 0; i < 7; i++, p += a) s->piece[i] = p;
    for (int i = 0; i < 3; i++, p += a) s->grad[i] = p;
    return TG_OK;
}

typedef struct tally {
    double policy, value, entropy, loss, clip; /* sums over the minibatches not skipped */
    double kl;                                 /* sum over those of the last epoch */
    double norm;                               /* sum over those applied */
    int n, n_epoch, n_norm;
} tally;

typedef struct update { /* what the loops of one update share */
    tg_actor_critic *ac;
    const tg_ppo_opts *o;
    tg_ppo_coefs coefs;
    const tg_rollout *r;
    const tg_update_probe *probe;
    tg_minibatches *mb;
    scratch s;
    tally t;
    tg_update_stats *stats;
} update;

/* Loss and gradients of one piece; the networks' answers go back to the order of the minibatch. */
static tg_status run_piece(update *u, const int32_t *rows, int total, const tg_minibatch_piece *p,
                           tg_ppo_terms *terms, tg_error *err) {
    scratch *s = &u->s;
    const tg_rollout *r = u->r;
    int n = p->batch.n_actions;
    float *logp = s->piece[0], *entropy = s->piece[1], *value = s->piece[2];
    tg_status st = tg_actor_critic_forward(u->ac, &p->batch, logp, entropy, value, err);
    if (st != TG_OK) return st;
    for (int i = 0; i < n; i++) {
        int at = p->place[i], row = rows[at];
        s->piece[3][i] = r->row_logp[row];
        s->piece[4][i] = r->row_value[row];
        s->piece[5][i] = s->adv[at];
        s->piece[6][i] = r->ret[row];
        s->logp[at] = logp[i];
        s->entropy[at] = entropy[i];
        s->value[at] = value[i];
    }
    tg_ppo_rows in = {.logp = logp,
                      .entropy = entropy,
                      .value = value,
                      .logp_old = s->piece[3],
                      .value_old = s->piece[4],
                      .adv = s->piece[5],
                      .ret = s->piece[6]};
    tg_ppo_loss(&u->coefs, &in, n, total, terms, s->grad[0], s->grad[1], s->grad[2]);
    if (!terms->finite) return TG_OK; /* the caller drops the whole minibatch */
    const float *dentropy = u->coefs.ent_coef != 0 ? s->grad[1] : NULL;
    return tg_actor_critic_backward(u->ac, s->grad[0], dentropy, s->grad[2], err);
}

static tg_status run_minibatch(update *u, int k, tg_ppo_terms *terms, tg_error *err) {
    const int32_t *rows = u->mb->rows + u->mb->first[k];
    int n = u->mb->first[k + 1] - u->mb->first[k];
    for (int i = 0; i < n; i++) u->s.adv[i] = u->r->adv[rows[i]];
    if (u->o->normalize_advantage) tg_normalise_advantages(u->s.adv, u->s.adv, n);
    *terms = (tg_ppo_terms){.finite = true};
    tg_status st = tg_minibatches_pack(u->mb, k, err);
    tg_minibatch_piece piece;
    while (st == TG_OK && terms->finite && tg_minibatches_next(u->mb, &piece))
        st = run_piece(u, rows, n, &piece, terms, err);
    return st;
}

/* ---- statistics ---- */

static void tally_add(tally *t, const tg_ppo_coefs *c, const tg_ppo_terms *m) {
    t->policy += m->policy_loss;
    t->value += m->value_loss;
    t->entropy += m->entropy_loss;
    t->loss += tg_ppo_total(c, m);
    t->clip += m->clip_fraction;
    t->kl += m->approx_kl;
    t->n++;
    t->n_epoch++;
}

static void put(tg_update_stats *s, const char *name, double value) {
    TG_ASSERT(s->n < TG_STATS_MAX);
    s->name[s->n] = name;
    s->value[s->n++] = value;
}

static void report_stats(tg_update_stats *s, const tally *t, const tg_rollout *r, int epochs) {
    put(s, "ppo/entropy_loss", t->entropy / t->n);
    put(s, "ppo/policy_gradient_loss", t->policy / t->n);
    put(s, "ppo/value_loss", t->value / t->n);
    put(s, "ppo/approx_kl", t->kl / t->n_epoch);
    put(s, "ppo/explained_variance", tg_explained_variance(r->row_value, r->ret, r->n_rows));
    put(s, "ppo/loss", t->loss / t->n);
    put(s, "ppo/clip_fraction", t->clip / t->n);
    put(s, "ppo/grad_norm", t->norm / t->n_norm);
    put(s, "ppo/epochs", epochs);
    put(s, "ppo/minibatches", s->minibatches);
    put(s, "ppo/skipped_minibatches", s->skipped);
}

static void tell_probe(const update *u, int epoch, int k, const tg_ppo_terms *t) {
    if (!u->probe) return;
    const tg_minibatches *mb = u->mb;
    tg_minibatch_report report = {.epoch = epoch,
                                  .batch = k,
                                  .n = mb->first[k + 1] - mb->first[k],
                                  .rows = mb->rows + mb->first[k],
                                  .logp = u->s.logp,
                                  .entropy = u->s.entropy,
                                  .value = u->s.value,
                                  .adv = u->s.adv,
                                  .policy_loss = t->policy_loss,
                                  .value_loss = t->value_loss,
                                  .entropy_loss = t->entropy_loss,
                                  .loss = tg_ppo_total(&u->coefs, t),
                                  .approx_kl = t->approx_kl,
                                  .clip_fraction = t->clip_fraction};
    u->probe->minibatch(u->probe->arg, &report);
}

/* ---- the update ---- */

static void skip(update *u, int epoch, int k, const char *what) {
    u->stats->skipped++;
    tg_log_warn("ppo", "epoch %d, minibatch %d: %s is not finite; nothing of it is applied", epoch,
                k, what);
}

static tg_status step(update *u, int epoch, int k, tg_error *err) {
    tg_ppo_terms terms;
    tg_status st = run_minibatch(u, k, &terms, err);
    if (st != TG_OK) return st;
    if (!terms.finite || !isfinite(tg_ppo_total(&u->coefs, &terms))) {
        tg_optim_clear(u->ac->optim);
        skip(u, epoch, k, "the loss");
        return TG_OK;
    }
    if (epoch == 0 && k == 0) {
        u->stats->first_ratio_error = terms.ratio_error;
        u->stats->first_clip_fraction = terms.clip_fraction;
    }
    if (!isnan(u->o->target_kl) && terms.approx_kl > 1.5 * u->o->target_kl) { /* before the step */
        tally_add(&u->t, &u->coefs, &terms);
        tg_optim_clear(u->ac->optim);
        u->stats->stopped = true;
        return TG_OK;
    }
    tell_probe(u, epoch, k, &terms);
    double norm;
    bool applied;
    st = tg_actor_critic_apply(u->ac, u->o->learning_rate, u->o->max_grad_norm, &norm, &applied,
                               err);
    if (st != TG_OK) return st;
    if (!applied) {
        skip(u, epoch, k, "the gradient");
        return TG_OK;
    }
    tally_add(&u->t, &u->coefs, &terms);
    u->stats->minibatches++;
    u->t.norm += norm;
    u->t.n_norm++;
    return TG_OK;
}

/* A failed backward leaves part of a gradient behind: the next update must not see it. */
static tg_status run_epochs(update *u, const tg_order *order, int *epochs, tg_error *err) {
    tg_status st = TG_OK;
    for (*epochs = 0; st == TG_OK && *epochs < u->o->n_epochs && !u->stats->stopped; ++*epochs) {
        u->t.kl = u->t.n_epoch = 0; /* approx_kl is that of the last epoch */
        st = tg_minibatches_shuffle(u->mb, order, *epochs, err);
        for (int k = 0; st == TG_OK && k < u->mb->n && !u->stats->stopped; k++)
            st = step(u, *epochs, k, err);
    }
    if (st != TG_OK) tg_optim_clear(u->ac->optim);
    return st;
}

static tg_status ppo_update(tg_actor_critic *ac, const void *opts, const tg_rollout *r,
                            const tg_order *order, const tg_update_probe *probe,
                            tg_update_stats *stats, tg_error *err) {
    const tg_ppo_opts *o = opts;
    *stats =
        (tg_update_stats){.first_ratio_error = (double)NAN, .first_clip_fraction = (double)NAN};
    update u = {.ac = ac,
                .o = o,
                .coefs = {.clip_range = o->clip_range,
                          .clip_range_vf = o->clip_range_vf,
                          .ent_coef = o->ent_coef,
                          .vf_coef = o->vf_coef},
                .r = r,
                .probe = probe,
                .stats = stats};
    tg_minibatch_mode mode =
        strcmp(o->minibatch, "transition") == 0 ? TG_MINIBATCH_TRANSITION : TG_MINIBATCH_SEQUENCE;
    int batch_size = (int)TG_MIN(o->batch_size, (int64_t)r->n_rows), epochs;
    tg_status st = tg_minibatches_create(&u.mb, r, mode, batch_size, ac->caps, err);
    if (st == TG_OK) st = scratch_init(&u.s, r->n_rows, ac->caps.actions, err);
    if (st == TG_OK) st = run_epochs(&u, order, &epochs, err);
    if (st == TG_OK) report_stats(stats, &u.t, r, epochs);
    tg_free(u.s.block);
    tg_minibatches_destroy(&u.mb);
    return st;
}

const tg_algo_ops tg_algo_ppo = {
    .name = "ppo",
    .summary = "Proximal policy optimisation with a clipped surrogate objective and a KL reward.",
    .options = tg_ppo_options,
    .options_size = sizeof(tg_ppo_opts),
    .built = true,
    .plan = plan,
    .update = ppo_update,
};
