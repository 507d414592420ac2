/* The objectives of the algorithms as pure functions on per-token arrays.
 *
 * PPO (Schulman et al. 2017, "Proximal Policy Optimization Algorithms"):
 *   r_t    = exp(logp_t - logp_old_t)
 *   L^CLIP = mean min(r_t A_t, clip(r_t, 1 - eps, 1 + eps) A_t)                             (eq. 7)
 *   L^VF   = mean (ret_t - v_t)^2;  with clip_range_vf c: v_t := v_old_t + clip(v_t - v_old_t, -c, c)
 *   loss   = -L^CLIP + vf_coef L^VF - ent_coef mean H_t                          (eq. 9, as a loss)
 * A2C (Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning", section 4):
 *   loss   = -mean logp_t A_t + vf_coef L^VF - ent_coef mean H_t
 *
 * A minibatch may be given in several pieces: every piece divides by the size of the whole and adds
 * to the same sums. */
#ifndef TG_RL_LOSS_H
#define TG_RL_LOSS_H

#include <stdbool.h>

typedef struct tg_loss_coefs {
    double clip_range;    /* PPO */
    double clip_range_vf; /* NaN: values are not clipped */
    double ent_coef, vf_coef;
} tg_loss_coefs;

/* What the rollout recorded, and what the networks say now; each (n). */
typedef struct tg_loss_rows {
    const float *logp_old, *value_old, *adv, *ret;
    const float *logp, *entropy, *value;
} tg_loss_rows;

/* Over a minibatch. Means once all pieces are in. */
typedef struct tg_loss_terms {
    double policy_loss;   /* -L^CLIP */
    double value_loss;    /* L^VF */
    double entropy_loss;  /* -mean H */
    double approx_kl;     /* mean (r - 1) - log r */
    double clip_fraction; /* of rows with |r - 1| > clip_range */
    double ratio_error;   /* max |r - 1| */
    bool finite;          /* every ratio and every summand is */
} tg_loss_terms;

/* Adds a piece of n rows of a minibatch of `total`; writes d loss / d logp, entropy, value (n
 * each). Start from {.finite = true}. */
typedef void tg_loss_fn(const tg_loss_coefs *c, const tg_loss_rows *rows, int n, int total,
                        tg_loss_terms *terms, float *dlogp, float *dentropy, float *dvalue);
tg_loss_fn tg_ppo_loss, tg_a2c_loss;

/* policy_loss + ent_coef * entropy_loss + vf_coef * value_loss. */
double tg_loss_total(const tg_loss_coefs *c, const tg_loss_terms *terms);

/* out = (adv - mean) / (std + 1e-8), unbiased; n = 1: unchanged. out may alias adv. */
void tg_normalise_advantages(float *out, const float *adv, int n);

/* 1 - Var(ret - value) / Var(ret); NaN when ret does not vary. */
double tg_explained_variance(const float *value, const float *ret, int n);

#endif
