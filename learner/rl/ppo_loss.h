/* The PPO objective as pure functions on per-token arrays (Schulman et al. 2017, "Proximal Policy
 * Optimization Algorithms").
 *
 *   r_t    = exp(logp_t - logp_old_t)
 *   L^CLIP = mean min(r_t A_t, clip(r_t, 1 - eps, 1 + eps) A_t) (eq. 7) L^VF   = mean (ret_t -
 * v_t)^2;  with clip_range_vf c: v_t := v_old_t + clip(v_t - v_old_t, -c, c) loss   = -L^CLIP +
 * vf_coef L^VF - ent_coef mean H_t                                          (eq. 9, as a loss)
 *
 * A minibatch may be given in several pieces: every piece divides by the size of the whole and adds
 * to the same sums. */
#ifndef TG_RL_PPO_LOSS_H
#define TG_RL_PPO_LOSS_H

#include <stdbool.h>

typedef struct tg_ppo_coefs {
    double clip_range;
    double clip_range_vf; /* NaN: values are not clipped */
    double ent_coef, vf_coef;
} tg_ppo_coefs;

/* What the rollout recorded, and what the networks say now; each (n). */
typedef struct tg_ppo_rows {
    const float *logp_old, *value_old, *adv, *ret;
    const float *logp, *entropy, *value;
} tg_ppo_rows;

/* Over a minibatch. Means once all pieces are in. */
typedef struct tg_ppo_terms {
    double policy_loss;   /* -L^CLIP */
    double value_loss;    /* L^VF */
    double entropy_loss;  /* -mean H */
    double approx_kl;     /* mean (r - 1) - log r */
    double clip_fraction; /* of rows with |r - 1| > clip_range */
    double ratio_error;   /* max |r - 1| */
    bool finite;          /* every ratio and every summand is */
} tg_ppo_terms;

/* Adds a piece of n rows of a minibatch of `total`; writes d loss / d logp, entropy, value (n
 * each). Start from {.finite = true}. */
void tg_ppo_loss(const tg_ppo_coefs *c, const tg_ppo_rows *rows, int n, int total,
                 tg_ppo_terms *terms, float *dlogp, float *dentropy, float *dvalue);

/* policy_loss + ent_coef * entropy_loss + vf_coef * value_loss. */
double tg_ppo_total(const tg_ppo_coefs *c, const tg_ppo_terms *terms);

/* out = (adv - mean) / (std + 1e-8), unbiased; n = 1: unchanged. out may alias adv. */
void tg_normalise_advantages(float *out, const float *adv, int n);

/* 1 - Var(ret - value) / Var(ret); NaN when ret does not vary. */
double tg_explained_variance(const float *value, const float *ret, int n);

#endif
