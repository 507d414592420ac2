/* Activation functions.
 *
 * gelu_tanh   0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))     Hugging Face "gelu_new", "gelu_pytorch_tanh"
 * gelu        x Phi(x), Phi the normal distribution function       "gelu"
 * relu        max(x, 0); its derivative at 0 is 0                  "relu"
 * silu        x / (1 + e^-x)                                       "silu", "swish"
 * quick_gelu  x / (1 + e^(-1.702 x))                               "quick_gelu"
 * tanh        tanh x                                               "tanh"
 *
 * act_forward:    y (n) = act(x); y may alias x.
 * act_backward:   dx (n) = dy act'(x); dx may alias dy.
 * gated_forward:  y (N,F) = act(g) u, where a row of x (N,2F) is g and then u. No aliasing.
 * gated_backward: dx (N,2F) = [dy u act'(g), dy act(g)]. No aliasing.
 * softcap:        y (n) = cap tanh(y / cap), in place; cap > 0. */
#ifndef TG_NN_OP_ACTIVATION_H
#define TG_NN_OP_ACTIVATION_H

#include <stddef.h>

struct tg_backend;

typedef enum tg_act {
    TG_ACT_GELU_TANH,
    TG_ACT_GELU,
    TG_ACT_RELU,
    TG_ACT_SILU,
    TG_ACT_QUICK_GELU,
    TG_ACT_TANH,
    TG_N_ACTS
} tg_act;

typedef void tg_op_act_forward(struct tg_backend *be, float *y, const float *x, size_t n,
                               tg_act kind);
typedef void tg_op_act_backward(struct tg_backend *be, float *dx, const float *dy, const float *x,
                                size_t n, tg_act kind);
typedef void tg_op_gated_forward(struct tg_backend *be, float *y, const float *x, int N, int F,
                                 tg_act kind);
typedef void tg_op_gated_backward(struct tg_backend *be, float *dx, const float *dy, const float *x,
                                  int N, int F, tg_act kind);
typedef void tg_op_softcap(struct tg_backend *be, float *y, float cap, size_t n);

#endif
