/* Root-mean-square normalisation (Zhang & Sennrich 2019) of rows or of the heads inside them.
 *
 * Vector h of row i lies at x[i*ld + h*step], C floats; h < H. A whole row is H = 1, ld = C. y, dy and dx lie as x does.
 *
 * forward:  y = x * rstd * (gamma + offset), rstd = 1 / sqrt(mean(x^2) + eps). gamma (C); rstd (N,H) is written for backward.
 *           y may alias x only when no backward follows. Floats of y outside the vectors are not touched.
 * backward: dx = (or += when accumulate) ..., dgamma (C) += sum dy * x * rstd; dgamma NULL: frozen, not computed.
 *           dx may alias dy when not accumulating. */
#ifndef TG_NN_OP_RMSNORM_H
#define TG_NN_OP_RMSNORM_H

#include <stdbool.h>

struct tg_backend;

typedef struct tg_rms_dims {
    int N, H, C, ld, step;
    float offset;
} tg_rms_dims;

typedef void tg_op_rmsnorm_forward(struct tg_backend *be, float *y, float *rstd, const float *x,
                                   const float *gamma, float eps, tg_rms_dims dims);
typedef void tg_op_rmsnorm_backward(struct tg_backend *be, float *dx, float *dgamma,
                                    const float *dy, const float *x, const float *rstd,
                                    const float *gamma, bool accumulate, tg_rms_dims dims);

#endif
