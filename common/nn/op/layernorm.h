/* Layer normalisation over the last axis.
 *
 * forward:  y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(var + eps), biased variance.
 *           y, x (N,C); mean, rstd (N) are written for backward. y may alias x only when no backward follows.
 * backward: dx (N,C) += ..., dgamma (C) += sum dy * xhat, dbeta (C) += sum dy.  dx aliases nothing. dgamma and dbeta NULL:
 *           frozen, not computed. */
#ifndef TG_NN_OP_LAYERNORM_H
#define TG_NN_OP_LAYERNORM_H

struct tg_backend;

typedef void tg_op_layernorm_forward(struct tg_backend *be, float *y, float *mean, float *rstd,
                                     const float *x, const float *gamma, const float *beta, int N,
                                     int C, float eps);
typedef void tg_op_layernorm_backward(struct tg_backend *be, float *dx, float *dgamma, float *dbeta,
                                      const float *dy, const float *x, const float *mean,
                                      const float *rstd, const float *gamma, int N, int C);

#endif
