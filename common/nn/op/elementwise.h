/* Element by element, n floats.
 *
 * gelu_forward:  y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))  (Hugging Face "gelu_new"); y may alias x.
 * gelu_backward: dx = dy * gelu'(x); dx may alias dy.
 * add:   y += x.          scale: y *= a.        fill: y = a.        copy: y = x (no overlap).
 * sumsq: sum of x*x in double, in a fixed order that does not depend on the number of threads. Returned to the host. */
#ifndef TG_NN_OP_ELEMENTWISE_H
#define TG_NN_OP_ELEMENTWISE_H

#include <stddef.h>

struct tg_backend;

typedef void tg_op_gelu_forward(struct tg_backend *be, float *y, const float *x, size_t n);
typedef void tg_op_gelu_backward(struct tg_backend *be, float *dx, const float *dy, const float *x, size_t n);
typedef void tg_op_add(struct tg_backend *be, float *y, const float *x, size_t n);
typedef void tg_op_scale(struct tg_backend *be, float *y, float a, size_t n);
typedef void tg_op_fill(struct tg_backend *be, float *y, float a, size_t n);
typedef void tg_op_copy(struct tg_backend *be, float *y, const float *x, size_t n);
typedef double tg_op_sumsq(struct tg_backend *be, const float *x, size_t n);

#endif
