/* Products with the Fisher information matrix of a model's action distributions, without forming it (Schulman et al. 2015, "Trust
 * Region Policy Optimization", appendix C.1):
 *
 *     F v = sum_t w_t J_t^T (diag(p_t) - p_t p_t^T) J_t v,        J_t = d logits_t / d parameters
 *
 * J v by forward mode, a tangent beside every value of the last forward; then backward. Exact to rounding: no second
 * derivative and no step size. F is the Hessian of sum w_t KL(p_t || q) at q = p_t.
 *
 *     tg_fisher *f;
 *     tg_fisher_create(&f, pass, err);                      // a training pass, without recomputation
 *     ... write v to tg_fisher_direction(f) ...
 *     tg_pass_forward(pass, &batch, out with logp, err);
 *     tg_fisher_product(f, weights, err);                   // model->grad += F v
 */
#ifndef TG_NN_FISHER_H
#define TG_NN_FISHER_H

#include "common/nn/pass.h"

typedef struct tg_fisher tg_fisher;

/* The pass is borrowed. TG_UNSUPPORTED: an encoder, which chooses no tokens. */
tg_status tg_fisher_create(tg_fisher **out, tg_pass *pass, tg_error *err) TG_MUST_CHECK;
void tg_fisher_destroy(tg_fisher **f);
/* What one takes, its direction included: for the memory plan. */
size_t tg_fisher_bytes(const tg_arch *arch, tg_pass_caps caps);

/* Device (params.total), in the layout of the model's data; zero at first. */
float *tg_fisher_direction(tg_fisher *f);
/* weights: host (n_actions) of the last forward, which must have asked for log-probs. */
tg_status tg_fisher_product(tg_fisher *f, const float *weights, tg_error *err) TG_MUST_CHECK;

#endif
