/* See descent.h. */
#include "learner/rl/descent.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "learner/optim/schedule.h"

#include <math.h>

/* ---- one minibatch ---- */

/* Loss and gradients of one piece; the networks' answers go back to the order of the minibatch. */
static tg_status run_piece(tg_descent *d, const int32_t *rows, int total,
                           const tg_minibatch_piece *p, tg_loss_terms *terms, tg_error *err) {
    const tg_rollout *r = d->r;
    int n = p->batch.n_actions;
    float *logp = d->piece[0], *entropy = d->piece[1], *value = d->piece[2];
    tg_batch batch = p->batch;
    batch.actions_only = true;
    tg_status st = tg_actor_critic_forward(d->ac, &batch, logp, entropy, value, err);
    if (st != TG_OK) return st;
    for (int i = 0; i < n; i++) {
        int at = p->place[i], row = rows[at];
        d->piece[3][i] = r->row_logp[row];
        d->piece[4][i] = r->row_value[row];
        d->piece[5][i] = d->adv[at];
        d->piece[6][i] = r->ret[row];
        d->logp[at] = logp[i];
        d->entropy[at] = entropy[i];
        d->value[at] = value[i];
    }
    tg_loss_rows in = {.logp = logp,
                       .entropy = entropy,
                       .value = value,
                       .logp_old = d->piece[3],
                       .value_old = d->piece[4],
                       .adv = d->piece[5],
                       .ret = d->piece[6]};
    d->o.loss(&d->o.coefs, &in, n, total, terms, d->grad[0], d->grad[1], d->grad[2]);
    if (!terms->finite) return TG_OK; /* the caller drops the whole minibatch */
    const float *dentropy = d->o.coefs.ent_coef != 0 ? d->grad[1] : NULL;
    return tg_actor_critic_backward(d->ac, d->grad[0], dentropy, d->grad[2], err);
}

static tg_status run_minibatch(tg_descent *d, int k, tg_loss_terms *terms, tg_error *err) {
    const int32_t *rows = d->mb->rows + d->mb->first[k];
    int n = d->mb->first[k + 1] - d->mb->first[k];
    for (int i = 0; i < n; i++) d->adv[i] = d->r->adv[rows[i]];
    if (d->o.normalize_advantage) tg_normalise_advantages(d->adv, d->adv, n);
    *terms = (tg_loss_terms){.finite = true};
    tg_status st = tg_minibatches_pack(d->mb, k, err);
    tg_minibatch_piece piece;
    while (st == TG_OK && terms->finite && tg_minibatches_next(d->mb, &piece))
        st = run_piece(d, rows, n, &piece, terms, err);
    return st;
}

/* ---- counting ---- */

static void count(tg_descent *d, const tg_loss_terms *m) {
    tg_descent_tally *t = &d->tally;
    t->policy += m->policy_loss;
    t->value += m->value_loss;
    t->entropy += m->entropy_loss;
    t->loss += tg_loss_total(&d->o.coefs, m);
    t->clip += m->clip_fraction;
    t->kl += m->approx_kl;
    t->n++;
    t->n_epoch++;
}

static void tell_probe(const tg_descent *d, int epoch, int k, const tg_loss_terms *t) {
    if (!d->probe) return;
    const tg_minibatches *mb = d->mb;
    tg_minibatch_report report = {.epoch = epoch,
                                  .batch = k,
                                  .n = mb->first[k + 1] - mb->first[k],
                                  .rows = mb->rows + mb->first[k],
                                  .logp = d->logp,
                                  .entropy = d->entropy,
                                  .value = d->value,
                                  .adv = d->adv,
                                  .policy_loss = t->policy_loss,
                                  .value_loss = t->value_loss,
                                  .entropy_loss = t->entropy_loss,
                                  .loss = tg_loss_total(&d->o.coefs, t),
                                  .approx_kl = t->approx_kl,
                                  .clip_fraction = t->clip_fraction};
    d->probe->minibatch(d->probe->arg, &report);
}

void tg_stats_put(tg_update_stats *s, const char *name, double value) {
    TG_ASSERT(s->n < TG_STATS_MAX);
    s->name[s->n] = name;
    s->value[s->n++] = value;
}

double tg_scheduled(const char *kind, double peak, int64_t warmup, const tg_order *order) {
    tg_schedule s = {tg_schedule_find(kind), peak, warmup, (int64_t)order->n_iterations};
    return order->n_iterations ? tg_schedule_rate(&s, (int64_t)order->iteration) : peak;
}

/* ---- steps ---- */

static void skip(tg_descent *d, int epoch, int k, const char *what) {
    d->stats->skipped++;
    tg_log_warn(d->o.name, "epoch %d, minibatch %d: %s is not finite; nothing of it is applied",
                epoch, k, what);
}

static tg_status step(tg_descent *d, int epoch, int k, tg_error *err) {
    tg_loss_terms terms;
    tg_status st = run_minibatch(d, k, &terms, err);
    if (st != TG_OK) return st;
    if (!terms.finite || !isfinite(tg_loss_total(&d->o.coefs, &terms))) {
        tg_optim_clear(d->ac->optim);
        skip(d, epoch, k, "the loss");
        return TG_OK;
    }
    if (epoch == 0 && k == 0) {
        d->stats->first_ratio_error = terms.ratio_error;
        d->stats->first_clip_fraction = terms.clip_fraction;
    }
    if (!isnan(d->o.target_kl) && terms.approx_kl > 1.5 * d->o.target_kl) { /* before the step */
        count(d, &terms);
        tg_optim_clear(d->ac->optim);
        d->stats->stopped = true;
        return TG_OK;
    }
    tell_probe(d, epoch, k, &terms);
    double norm;
    bool applied;
    st = tg_actor_critic_apply(d->ac, d->o.learning_rate, d->o.max_grad_norm, &norm, &applied, err);
    if (st != TG_OK) return st;
    if (!applied) {
        skip(d, epoch, k, "the gradient");
        return TG_OK;
    }
    count(d, &terms);
    d->stats->minibatches++;
    d->tally.norm += norm;
    d->tally.n_norm++;
    return TG_OK;
}

tg_status tg_descent_epoch(tg_descent *d, const tg_order *order, int epoch, tg_error *err) {
    d->tally.kl = d->tally.n_epoch = 0; /* approx_kl is that of the last epoch */
    tg_status st = tg_minibatches_shuffle(d->mb, order, epoch, err);
    for (int k = 0; st == TG_OK && k < d->mb->n && !d->stats->stopped; k++)
        st = step(d, epoch, k, err);
    /* A failed backward leaves part of a gradient behind: the next update must not see it. */
    if (st != TG_OK) tg_optim_clear(d->ac->optim);
    return st;
}

/* ---- opening ---- */

static tg_status alloc_arrays(tg_descent *d, int n_rows, int n_actions, tg_error *err) {
    size_t n = (size_t)n_rows, a = (size_t)n_actions;
    d->block = tg_alloc_array(4 * n + 10 * a, sizeof(float));
    if (!d->block) return tg_fail_nomem(err, (4 * n + 10 * a) * sizeof(float));
    float *p = d->block;
    float **of_rows[] = {&d->adv, &d->logp, &d->entropy, &d->value};
    for (size_t i = 0; i < TG_COUNT_OF(of_rows); i++, p += n) *of_rows[i] = p;
    for (int i = 0; i < 7; i++, p += a) d->piece[i] = p;
    for (int i = 0; i < 3; i++, p += a) d->grad[i] = p;
    return TG_OK;
}

tg_status tg_descent_open(tg_descent *d, tg_actor_critic *ac, const tg_rollout *r,
                          const tg_descent_opts *o, const tg_update_probe *probe,
                          tg_update_stats *stats, tg_error *err) {
    *d = (tg_descent){.stats = stats, .o = *o, .ac = ac, .r = r, .probe = probe};
    *stats =
        (tg_update_stats){.first_ratio_error = (double)NAN, .first_clip_fraction = (double)NAN};
    int batch_size = (int)TG_MIN(o->batch_size, (int64_t)r->n_rows);
    tg_status st = tg_minibatches_create(&d->mb, r, o->mode, batch_size, ac->caps, err);
    return st == TG_OK ? alloc_arrays(d, r->n_rows, ac->caps.actions, err) : st;
}

void tg_descent_close(tg_descent *d) {
    tg_free(d->block);
    tg_minibatches_destroy(&d->mb);
}
