/* Policy, critic and reference with one optimizer.
 *
 * Invariant: gradients are zero between tg_actor_critic_apply and the next backward. Used from the
 * thread of the backend. */
#include "learner/policy/actor_critic.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/fisher.h"
#include "learner/rl/pack.h"

#include <math.h>
#include <string.h>

/* ---- opening ---- */

static tg_status open_models(tg_backend *be, const tg_actor_critic_opts *o, tg_model **policy,
                             tg_model **value, tg_model **ref, tg_error *err) {
    unsigned shared = o->critic == TG_CRITIC_SHARED ? TG_MODEL_VALUE_HEAD : 0;
    unsigned train = o->train ? o->train : TG_MODEL_TRAINABLE;
    tg_status st = tg_model_open(policy, be, o->model_folder, train | shared, o->seed, err);
    if (st == TG_OK && !shared)
        st = tg_model_clone(value, *policy, train | TG_MODEL_VALUE_HEAD, o->seed, err);
    if (st == TG_OK && o->reference)
        st = tg_model_clone(ref, *policy, train & TG_MODEL_ROUNDED, o->seed, err);
    return st;
}

tg_status tg_actor_critic_open(tg_actor_critic **out, tg_backend *be,
                               const tg_actor_critic_opts *opts, tg_error *err) {
    *out = NULL;
    tg_model *policy = NULL, *value = NULL, *ref = NULL;
    tg_status st = open_models(be, opts, &policy, &value, &ref, err);
    bool rests = ref && !opts->keep_reference && !opts->half_reference;
    if (st == TG_OK && ref && opts->half_reference) st = tg_model_halve(ref, err);
    if (st == TG_OK && rests) st = tg_model_rest(ref, err);
    if (st == TG_OK) {
        st = tg_actor_critic_create(out, opts, policy, value, ref, err);
        if (*out) (*out)->ref_rests = rests;
        return st;
    }
    tg_model_destroy(&policy);
    tg_model_destroy(&value);
    tg_model_destroy(&ref);
    return st;
}

static tg_status check_models(const tg_actor_critic *ac, const tg_actor_critic_opts *o,
                              tg_error *err) {
    if (!ac->policy->grad || !ac->value->grad || !ac->value->arch.value_head)
        return tg_fail(err, TG_BUG, "actor and critic need gradients, the critic a value head");
    if (o->reference != (ac->ref != NULL))
        return tg_fail(err, TG_BUG, "a reference model is %s",
                       o->reference ? "missing" : "not wanted");
    return TG_OK;
}

static tg_status open_pass(tg_pass **pass, const tg_actor_critic *ac, tg_model *m, unsigned mode,
                           tg_error *err) {
    tg_pass_caps caps = ac->caps;
    caps.values = m == ac->value && m != ac->policy;
    return *pass ? TG_OK : tg_pass_create(pass, m, caps, mode, err);
}

static tg_status open_passes(tg_actor_critic *ac, tg_error *err) {
    unsigned mode = ac->recompute ? TG_PASS_RECOMPUTE : TG_PASS_TRAIN;
    tg_status st = open_pass(&ac->policy_pass, ac, ac->policy, mode, err);
    if (st == TG_OK && ac->critic == TG_CRITIC_SEPARATE)
        st = open_pass(&ac->value_pass, ac, ac->value, mode, err);
    return st;
}

static void close_passes(tg_actor_critic *ac) {
    tg_pass_destroy(&ac->policy_pass);
    tg_pass_destroy(&ac->value_pass);
    tg_pass_destroy(&ac->ref_pass);
}

void tg_actor_critic_rest(tg_actor_critic *ac) {
    close_passes(ac);
    tg_optim_rest(ac->optim);
    tg_model_rest_grad(ac->policy); /* its optimizer may be the critic's alone */
}

static tg_status open_mask(tg_actor_critic *ac, tg_error *err) {
    size_t n = (size_t)ac->caps.actions;
    ac->mask_row = tg_alloc_array(n, sizeof *ac->mask_row);
    if (!ac->mask_row) return tg_fail_nomem(err, n * sizeof *ac->mask_row);
    return tg_model_clone(&ac->mask_model, ac->policy, 0, 0, err);
}

tg_status tg_actor_critic_create(tg_actor_critic **out, const tg_actor_critic_opts *opts,
                                 tg_model *policy, tg_model *value, tg_model *ref, tg_error *err) {
    *out = NULL;
    tg_actor_critic *ac = tg_alloc(sizeof *ac);
    if (!ac) {
        tg_model_destroy(&policy);
        if (value) tg_model_destroy(&value);
        if (ref) tg_model_destroy(&ref);
        return tg_fail_nomem(err, sizeof *ac);
    }
    *ac = (tg_actor_critic){.be = policy->be,
                            .policy = policy,
                            .value = value ? value : policy,
                            .ref = ref,
                            .critic = opts->critic,
                            .caps = opts->train_caps,
                            .recompute = opts->recompute,
                            .score_tokens = opts->train_caps.tokens + opts->train_caps.src};
    ac->mask = opts->mask;
    ac->caps.masked = opts->mask.kind != TG_MASK_NONE;
    if (opts->score_tokens > 0) ac->score_tokens = TG_MIN(opts->score_tokens, ac->score_tokens);
    tg_status st = check_models(ac, opts, err);
    if (st == TG_OK && ac->caps.masked) st = open_mask(ac, err);
    tg_model *trained[2] = {policy, value};
    int skipped = opts->critic_only ? 1 : 0;
    if (st == TG_OK)
        st = tg_optim_create(&ac->optim, trained + skipped, (value ? 2 : 1) - skipped, &opts->optim,
                             err);
    if (st != TG_OK) tg_actor_critic_destroy(&ac);
    *out = ac;
    return st;
}

void tg_actor_critic_destroy(tg_actor_critic **ac) {
    if (!*ac) return;
    tg_actor_critic *a = *ac;
    close_passes(a);
    tg_optim_destroy(&a->optim);
    if (a->value != a->policy) tg_model_destroy(&a->value);
    tg_model_destroy(&a->policy);
    tg_model_destroy(&a->ref);
    tg_model_destroy(&a->mask_model);
    tg_free(a->mask_row);
    tg_free(a);
    *ac = NULL;
}

/* ---- scoring ---- */

/* Adds the episodes from `from` on that fit into one pass; returns the first that does not. */
static int pack_episodes(const tg_actor_critic *ac, const tg_rollout *r, int from, tg_pack *p) {
    int e = from;
    tg_pack_clear(p);
    for (; e < r->n_episodes; e++) {
        const tg_episode *ep = &r->episodes[e];
        int tokens = p->batch.n_tokens + p->batch.n_src + ep->n_prompt + ep->n_actions - 1;
        if (e > from && tokens > ac->score_tokens) break; /* one sequence may exceed it */
        if (!tg_pack_fits(p, r, ep, ep->n_actions, ep->n_actions)) break;
        tg_pack_sequence(p, r, ep, ep->n_actions);
        for (int k = 0; k < ep->n_actions; k++) tg_pack_action(p, r, ep, k);
    }
    return e;
}

static tg_status check_finite(const tg_rollout *r, tg_error *err) {
    for (int i = 0; i < r->n_actions; i++)
        if (!isfinite(r->logp[i]) || !isfinite(r->ref_logp[i]) || !isfinite(r->value[i]))
            return tg_fail(err, TG_DATA,
                           "action %d of the rollout: log-prob %g, reference log-prob %g, value "
                           "%g; the networks are no longer "
                           "finite: resume from an earlier checkpoint with a smaller learning rate",
                           i, (double)r->logp[i], (double)r->ref_logp[i], (double)r->value[i]);
    return TG_OK;
}

bool tg_critic_knows(tg_critic critic, bool masked, unsigned flags, const tg_gen_settings *s) {
    return critic == TG_CRITIC_SHARED && !masked && !(flags & TG_MODEL_ROUNDED) &&
           s->num_beams == 1 && s->weights != TG_WEIGHT_PACKED_BF16 && !s->half_cache;
}

bool tg_actor_critic_knows(const tg_actor_critic *ac, const tg_gen_settings *s) {
    return tg_critic_knows(ac->critic, ac->mask.kind != TG_MASK_NONE, ac->policy->flags, s);
}

tg_status tg_actor_critic_score(tg_actor_critic *ac, tg_rollout *r, tg_error *err) {
    tg_arena arena = {0};
    tg_pack pack;
    tg_status st = tg_pack_init(&pack, r, ac->caps, &arena, err);
    if (st == TG_OK && ac->ref) st = tg_model_wake(ac->ref, err);
    if (st == TG_OK && ac->ref) st = open_pass(&ac->ref_pass, ac, ac->ref, TG_PASS_SCORE, err);
    const bool pass = !r->known || ac->ref;
    for (int from = 0, to; st == TG_OK && pass && from < r->n_episodes; from = to) {
        to = pack_episodes(ac, r, from, &pack);
        if (to == from) {
            const tg_episode *ep = &r->episodes[from];
            st =
                tg_fail(err, TG_BUG,
                        "an episode of %d + %d tokens does not fit a pass of %d tokens, %d actions",
                        ep->n_prompt, ep->n_actions, ac->caps.tokens, ac->caps.actions);
            break;
        }
        tg_batch b = tg_pack_batch(&pack);
        b.actions_only = true;
        int at = r->episodes[from].first_action;
        if (!r->known)
            st = tg_actor_critic_forward(ac, &b, r->logp + at, r->entropy + at, r->value + at, err);
        if (ac->mask.compat) b.mask = NULL; /* the KL is that of the whole distributions */
        if (st == TG_OK && ac->ref)
            st = tg_pass_forward(ac->ref_pass, &b, (tg_pass_out){.logp = r->ref_logp + at}, err);
    }
    tg_arena_fini(&arena);
    /* not needed by the update that follows */
    tg_pass_destroy(&ac->ref_pass);
    if (st == TG_OK && ac->ref_rests) st = tg_model_rest(ac->ref, err);
    return st == TG_OK ? check_finite(r, err) : st;
}

/* ---- training ---- */

static tg_status forward(tg_actor_critic *ac, const tg_batch *batch, float *logp, float *entropy,
                         float *value, tg_error *err) {
    if (ac->critic == TG_CRITIC_SHARED)
        return tg_pass_forward(ac->policy_pass, batch, (tg_pass_out){logp, entropy, value}, err);
    tg_status st = tg_pass_forward(ac->policy_pass, batch,
                                   (tg_pass_out){.logp = logp, .entropy = entropy}, err);
    return st == TG_OK ? tg_pass_forward(ac->value_pass, batch, (tg_pass_out){.value = value}, err)
                       : st;
}

static tg_status backward(tg_actor_critic *ac, const float *dlogp, const float *dentropy,
                          const float *dvalue, tg_error *err) {
    if (ac->critic == TG_CRITIC_SHARED)
        return tg_pass_backward(ac->policy_pass, dlogp, dentropy, dvalue, err);
    tg_status st = tg_pass_backward(ac->policy_pass, dlogp, dentropy, NULL, err);
    return st == TG_OK ? tg_pass_backward(ac->value_pass, NULL, NULL, dvalue, err) : st;
}

/* RL4LMs's masked distribution: logp is that of the whole distribution p, and with q the one over the set
 *     entropy = -sum q log p = H(q) + log q(a) - log p(a)        for any action a of the set,
 * because log q and log p differ by the same amount for all of them. Its clamp of p to at least 1.2e-7 is left out. */
static tg_status forward_compat(tg_actor_critic *ac, const tg_batch *batch, float *logp,
                                float *entropy, float *value, tg_error *err) {
    tg_batch whole = *batch;
    whole.mask = NULL;
    ac->last = *batch;
    tg_status st = tg_pass_forward(ac->policy_pass, batch,
                                   (tg_pass_out){.logp = ac->mask_row, .entropy = entropy}, err);
    if (st == TG_OK) st = forward(ac, &whole, logp, NULL, value, err);
    for (int i = 0; st == TG_OK && i < batch->n_actions; i++)
        entropy[i] += ac->mask_row[i] - logp[i];
    return st;
}

static tg_status backward_compat(tg_actor_critic *ac, const float *dlogp, const float *dentropy,
                                 const float *dvalue, tg_error *err) {
    int n = ac->last.n_actions;
    for (int i = 0; i < n; i++)
        ac->mask_row[i] = (dlogp ? dlogp[i] : 0) - (dentropy ? dentropy[i] : 0);
    tg_status st = backward(ac, ac->mask_row, NULL, dvalue, err);
    if (st != TG_OK || !dentropy) return st;
    st = tg_pass_forward(ac->policy_pass, &ac->last, (tg_pass_out){.logp = ac->mask_row}, err);
    return st == TG_OK ? tg_pass_backward(ac->policy_pass, dentropy, dentropy, NULL, err) : st;
}

tg_status tg_actor_critic_forward(tg_actor_critic *ac, const tg_batch *batch, float *logp,
                                  float *entropy, float *value, tg_error *err) {
    tg_status st = open_passes(ac, err);
    if (st != TG_OK) return st;
    ac->last = (tg_batch){0};
    return batch->mask && ac->mask.compat ? forward_compat(ac, batch, logp, entropy, value, err)
                                          : forward(ac, batch, logp, entropy, value, err);
}

tg_status tg_actor_critic_backward(tg_actor_critic *ac, const float *dlogp, const float *dentropy,
                                   const float *dvalue, tg_error *err) {
    return ac->last.mask ? backward_compat(ac, dlogp, dentropy, dvalue, err)
                         : backward(ac, dlogp, dentropy, dvalue, err);
}

tg_status tg_actor_critic_logp(tg_actor_critic *ac, const tg_batch *batch, float *logp,
                               tg_error *err) {
    tg_status st = open_passes(ac, err);
    return st == TG_OK ? tg_pass_forward(ac->policy_pass, batch, (tg_pass_out){.logp = logp}, err)
                       : st;
}

tg_status tg_actor_critic_logp_backward(tg_actor_critic *ac, const float *dlogp, tg_error *err) {
    return tg_pass_backward(ac->policy_pass, dlogp, NULL, NULL, err);
}

tg_status tg_actor_critic_values(tg_actor_critic *ac, const tg_batch *batch, float *value,
                                 tg_error *err) {
    tg_status st = open_passes(ac, err);
    return st == TG_OK ? tg_pass_forward(ac->value_pass, batch, (tg_pass_out){.value = value}, err)
                       : st;
}

tg_status tg_actor_critic_values_backward(tg_actor_critic *ac, const float *dvalue, tg_error *err) {
    return tg_pass_backward(ac->value_pass, NULL, NULL, dvalue, err);
}

tg_status tg_actor_critic_fisher(tg_actor_critic *ac, struct tg_fisher **out, tg_error *err) {
    *out = NULL;
    tg_status st = open_passes(ac, err);
    return st == TG_OK ? tg_fisher_create(out, ac->policy_pass, err) : st;
}

void tg_actor_critic_renew_mask(tg_actor_critic *ac) {
    if (!ac->mask_model || ac->mask.compat) return;
    tg_model *to = ac->mask_model;
    for (size_t i = 0; i < to->params.n; i++) {
        const tg_param *p = &to->params.list[i];
        const tg_param *from = tg_params_find(&ac->policy->params, p->name);
        TG_ASSERT(from && from->count == p->count);
        to->be->ops->copy(to->be, to->data + p->offset, ac->policy->data + from->offset, p->count);
    }
}

tg_status tg_actor_critic_apply(tg_actor_critic *ac, double lr, double max_grad_norm,
                                double *grad_norm, bool *applied, tg_error *err) {
    (void)err;
    double norm = tg_optim_grad_norm(ac->optim);
    *grad_norm = norm;
    *applied = isfinite(norm);
    if (!*applied) {
        tg_optim_clear(ac->optim);
        return TG_OK;
    }
    double scale = max_grad_norm > 0 ? max_grad_norm / (norm + 1e-6) : 1;
    tg_optim_step(ac->optim, lr, (float)TG_MIN(scale, 1.0));
    return TG_OK;
}
