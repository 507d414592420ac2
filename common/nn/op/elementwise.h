/* Element by element, n floats.
 *
 * add:   y += x.          scale: y *= a.        fill: y = a.        copy: y = x (no overlap).
 * sumsq: sum of x*x in double, in a fixed order that does not depend on the number of threads. Returned to the host. */
#ifndef TG_NN_OP_ELEMENTWISE_H
#define TG_NN_OP_ELEMENTWISE_H

#include <stddef.h>

struct tg_backend;

typedef void tg_op_add(struct tg_backend *be, float *y, const float *x, size_t n);
typedef void tg_op_scale(struct tg_backend *be, float *y, float a, size_t n);
typedef void tg_op_fill(struct tg_backend *be, float *y, float a, size_t n);
typedef void tg_op_copy(struct tg_backend *be, float *y, const float *x, size_t n);
typedef double tg_op_sumsq(struct tg_backend *be, const float *x, size_t n);

#endif
