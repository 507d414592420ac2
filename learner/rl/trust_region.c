/* One step of TRPO (Schulman et al. 2015, "Trust Region Policy Optimization", section 6 and appendix C):
 *
 *     maximise  L(theta) = mean r_t A_t      subject to  mean KL(pi_theta || pi_old) <= delta              (eq. 14, sampled)
 *     direction  x = (F + damping I)^-1 g,   g = grad L at pi_old                    (conjugate gradient)
 *     longest step  beta = sqrt(2 delta / x.Fx);  then shrink until KL < delta and L has grown          (line search)
 *
 * Invariant: the policy's parameters are the old ones, or old + step x for an accepted step. */
#include "learner/rl/trust_region.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/rl/cg.h"
#include "learner/rl/loss.h"

#include <math.h>
#include <string.h>

enum { LOGIT_ROWS = 32 };

tg_status tg_trust_region_open(tg_trust_region *t, tg_actor_critic *ac, const tg_rollout *r,
                               tg_minibatches *mb, const tg_trust_region_opts *o, tg_error *err) {
    tg_model *policy = ac->policy;
    size_t n = policy->params.grad_total, a = (size_t)ac->caps.actions;
    size_t v = (size_t)policy->arch.vocab_size;
    *t = (tg_trust_region){.ac = ac, .r = r, .mb = mb, .o = *o, .n_params = n};
    t->n = mb->first[1] - mb->first[0];
    struct {
        float **at;
        size_t n;
    } all[] = {{&t->adv, (size_t)t->n},
               {&t->logp, a},
               {&t->weight, a},
               {&t->logits[0], LOGIT_ROWS * v},
               {&t->logits[1], LOGIT_ROWS * v},
               {&t->gradient, n},
               {&t->x, n},
               {&t->work, TG_MAX(3 * n, policy->params.total)}};
    for (size_t i = 0; i < TG_COUNT_OF(all); i++)
        if (!(*all[i].at = tg_backend_host_alloc(policy->be, all[i].n, sizeof(float))))
            return tg_fail_nomem(err, all[i].n * sizeof(float));
    tg_status st = tg_actor_critic_fisher(ac, &t->fisher, err);
    const int32_t *rows = mb->rows + mb->first[0];
    for (int i = 0; st == TG_OK && i < t->n; i++) t->adv[i] = r->adv[rows[i]];
    if (st == TG_OK && o->normalize_advantage) tg_normalise_advantages(t->adv, t->adv, t->n);
    return st;
}

void tg_trust_region_close(tg_trust_region *t) {
    tg_pass_destroy(&t->old_pass);
    tg_model_destroy(&t->old);
    tg_fisher_destroy(&t->fisher);
    float *all[] = {t->adv,       t->logp,     t->weight, t->logits[0],
                    t->logits[1], t->gradient, t->x,      t->work};
    for (size_t i = 0; i < TG_COUNT_OF(all); i++) tg_backend_host_free(t->ac->be, all[i]);
}

size_t tg_trust_region_bytes(const tg_arch *arch, const tg_params *params, tg_pass_caps caps) {
    const size_t n = params->grad_total * sizeof(float), all = params->total * sizeof(float);
    size_t solving = tg_stock_bytes(tg_fisher_bytes(arch, caps));
    size_t searching =
        tg_stock_bytes(all) + tg_stock_bytes(tg_pass_bytes(arch, 0, caps, TG_PASS_SCORE));
    size_t rows = tg_stock_bytes(LOGIT_ROWS * (size_t)arch->vocab_size * sizeof(float));
    return TG_MAX(solving, searching) + 2 * (tg_stock_bytes(n) + rows) +
           tg_stock_bytes(TG_MAX(3 * n, all));
}

/* ---- the policy's vectors ---- */

static void clear_gradient(const tg_trust_region *t) {
    tg_model *m = t->ac->policy;
    if (!m->grad_rests) m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
}

/* The gradient as a vector, and zero again. */
static void take_gradient(const tg_trust_region *t, float *out) {
    tg_model *m = t->ac->policy;
    tg_backend_download(m->be, out, m->grad, t->n_params * sizeof *out);
    clear_gradient(t);
}

static void set_direction(const tg_trust_region *t, const float *v) {
    tg_model *m = t->ac->policy;
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        if (p->grad_offset == TG_PARAM_FROZEN) continue;
        tg_backend_upload(m->be, tg_fisher_direction(t->fisher) + p->offset, v + p->grad_offset,
                          p->count * sizeof *v);
    }
}

/* theta = the old parameters + step x. */
static void set_policy(const tg_trust_region *t, double step) {
    tg_model *m = t->ac->policy;
    float *theta = t->work;
    tg_backend_download(m->be, theta, t->old->data, m->params.total * sizeof *theta);
    for (size_t i = 0; i < m->params.n && step != 0; i++) {
        const tg_param *p = &m->params.list[i];
        for (size_t k = 0; k < p->count && p->grad_offset != TG_PARAM_FROZEN; k++)
            theta[p->offset + k] += (float)step * t->x[p->grad_offset + k];
    }
    tg_backend_upload(m->be, m->data, theta, m->params.total * sizeof *theta);
    tg_model_changed(m);
}

/* ---- the objective and its gradient ---- */

/* Adds a piece's share of L(theta); its derivatives by the log-probs in t->weight. */
static double objective_of(const tg_trust_region *t, const tg_minibatch_piece *p) {
    const int32_t *rows = t->mb->rows + t->mb->first[0];
    double sum = 0;
    for (int i = 0; i < p->batch.n_actions; i++) {
        int at = p->place[i];
        double ratio = exp((double)t->logp[i] - (double)t->r->row_logp[rows[at]]);
        double product = ratio * (double)t->adv[at] / t->n;
        t->weight[i] = (float)product;
        sum += product;
    }
    return sum;
}

static tg_status gradient(tg_trust_region *t, double *objective, tg_error *err) {
    tg_minibatch_piece p;
    *objective = 0;
    tg_status st = tg_minibatches_pack(t->mb, 0, err);
    while (st == TG_OK && tg_minibatches_next(t->mb, &p)) {
        st = tg_actor_critic_logp(t->ac, &p.batch, t->logp, err);
        if (st != TG_OK) break;
        *objective += objective_of(t, &p);
        st = tg_actor_critic_logp_backward(t->ac, t->weight, err);
    }
    take_gradient(t, t->gradient);
    return st;
}

/* out = (F + damping I) v */
static tg_status product(void *arg, const float *v, float *out, tg_error *err) {
    tg_trust_region *t = arg;
    tg_minibatch_piece p;
    set_direction(t, v);
    tg_status st = tg_minibatches_pack(t->mb, 0, err);
    while (st == TG_OK && tg_minibatches_next(t->mb, &p)) {
        st = tg_actor_critic_logp(t->ac, &p.batch, t->logp, err);
        for (int i = 0; i < p.batch.n_actions; i++) t->weight[i] = 1.0f / (float)t->n;
        if (st == TG_OK) st = tg_fisher_product(t->fisher, t->weight, err);
    }
    take_gradient(t, out);
    for (size_t i = 0; i < t->n_params; i++) out[i] += (float)t->o.damping * v[i];
    if (t->n_products < (int)TG_COUNT_OF(t->products)) {
        t->products[t->n_products][0] = tg_vec_dot(v, v, t->n_params);
        t->products[t->n_products++][1] = tg_vec_dot(v, out, t->n_params);
    }
    return st;
}

/* ---- the line search ---- */

static double log_sum_exp(const float *l, int n) {
    double top = -(double)INFINITY, sum = 0;
    for (int i = 0; i < n; i++) top = fmax(top, (double)l[i]);
    for (int i = 0; i < n; i++) sum += exp((double)l[i] - top);
    return top + log(sum);
}

/* KL(p || q) of two rows of logits. */
static double kl_of(const float *p, const float *q, int n) {
    double zp = log_sum_exp(p, n), zq = log_sum_exp(q, n), kl = 0;
    for (int i = 0; i < n; i++) {
        double lp = (double)p[i] - zp;
        kl += exp(lp) * (lp - ((double)q[i] - zq));
    }
    return kl;
}

/* Adds a piece's share of the mean KL(pi_theta || pi_old); both passes hold the piece. */
static tg_status add_kl(tg_trust_region *t, const tg_batch *b, double *kl, tg_error *err) {
    const int V = t->ac->policy->arch.vocab_size;
    tg_status st = TG_OK;
    for (int at = 0; st == TG_OK && at < b->n_actions; at += LOGIT_ROWS) {
        int n = TG_MIN(LOGIT_ROWS, b->n_actions - at);
        st = tg_pass_logits(t->ac->policy_pass, b->act_row + at, n, t->logits[0], err);
        if (st == TG_OK) st = tg_pass_logits(t->old_pass, b->act_row + at, n, t->logits[1], err);
        for (int i = 0; st == TG_OK && i < n; i++)
            *kl += kl_of(t->logits[0] + (size_t)i * (size_t)V, t->logits[1] + (size_t)i * (size_t)V,
                         V) /
                   t->n;
    }
    return st;
}

static tg_status evaluate(tg_trust_region *t, double *objective, double *kl, tg_error *err) {
    tg_minibatch_piece p;
    *objective = *kl = 0;
    tg_status st = tg_minibatches_pack(t->mb, 0, err);
    while (st == TG_OK && tg_minibatches_next(t->mb, &p)) {
        st = tg_pass_forward(t->old_pass, &p.batch, (tg_pass_out){.logp = t->logp}, err);
        if (st == TG_OK) st = tg_actor_critic_logp(t->ac, &p.batch, t->logp, err);
        if (st != TG_OK) break;
        *objective += objective_of(t, &p);
        st = add_kl(t, &p.batch, kl, err);
    }
    return st;
}

typedef struct trials {
    double at[64][3]; /* share of the longest step, L, KL */
    int n;
} trials;

static tg_status keep_old_policy(tg_trust_region *t, tg_error *err) {
    tg_fisher_destroy(&t->fisher); /* its memory is wanted */
    tg_status st =
        tg_model_clone(&t->old, t->ac->policy, t->ac->policy->flags & TG_MODEL_ROUNDED, 0, err);
    return st == TG_OK ? tg_pass_create(&t->old_pass, t->old, t->ac->caps, TG_PASS_SCORE, err) : st;
}

static tg_status line_search(tg_trust_region *t, double longest, double before, trials *tried,
                             tg_trust_region_result *result, tg_error *err) {
    double share = 1;
    tg_status st = keep_old_policy(t, err);
    for (int k = 0; k < t->o.max_trials && st == TG_OK && !result->success; k++) {
        double objective, kl;
        set_policy(t, share * longest);
        st = evaluate(t, &objective, &kl, err);
        if (st != TG_OK) break;
        if (tried->n < (int)TG_COUNT_OF(tried->at)) {
            double row[3] = {share, objective, kl};
            memcpy(tried->at[tried->n++], row, sizeof row);
        }
        result->success = kl < t->o.target_kl && objective > before;
        result->trials++;
        result->objective = objective;
        result->kl = kl;
        share *= t->o.shrink;
    }
    if (result->success || st != TG_OK) return st;
    set_policy(t, 0);
    result->objective = before;
    result->kl = 0;
    return TG_OK;
}

tg_status tg_trust_region_step(tg_trust_region *t, const tg_update_probe *probe,
                               tg_trust_region_result *result, tg_error *err) {
    *result = (tg_trust_region_result){.finite = true};
    double before;
    clear_gradient(t);
    tg_status st = gradient(t, &before, err);
    if (st != TG_OK) return st;
    tg_cg solver = {.n = t->n_params,
                    .max_steps = t->o.cg_steps,
                    .tolerance = 1e-10,
                    .product = product,
                    .arg = t,
                    .work = t->work};
    st = tg_cg_solve(&solver, t->x, t->gradient, err);
    int n_solving = t->n_products;
    if (st == TG_OK) st = product(t, t->x, t->work, err);
    if (st != TG_OK) return st;
    double longest = sqrt(2 * t->o.target_kl / tg_vec_dot(t->x, t->work, t->n_params));
    trials tried = {.n = 0};
    result->objective = before;
    if (!isfinite(longest) || !isfinite(before)) {
        result->finite = false;
        return TG_OK;
    }
    st = line_search(t, longest, before, &tried, result, err);
    if (st == TG_OK && probe && probe->trust_region)
        probe->trust_region(probe->arg,
                            &(tg_trust_region_report){.n = t->n,
                                                      .adv = t->adv,
                                                      .gradient = t->gradient,
                                                      .direction = t->x,
                                                      .n_params = t->n_params,
                                                      .objective = before,
                                                      .longest = longest,
                                                      .products = (const double(*)[2])t->products,
                                                      .n_products = n_solving,
                                                      .trials = (const double(*)[3])tried.at,
                                                      .n_trials = tried.n});
    return st;
}
