/* Matrix product and bias.
 *
 * matmul:         out (M,N) = op(a) op(b), or += when accumulate. op(a) is (M,K): a is stored (M,K), or (K,M) with ta;
 *                 op(b) is (K,N): b is stored (K,N), or (N,K) with tb. Row-major, dense. out aliases neither input.
 *                 rounded: a and b count as rounded to bf16, to nearest even (numbers below 2^-126 may count as 0); sums are f32.
 * bias_forward:   y (N,C) += b (C) on every row, in place.
 * bias_backward:  db (C) += column sums of dy (N,C).
 * cpu: the result does not depend on the number of threads. M, N or K may be 0 (K = 0: out = 0, or unchanged). */
#ifndef TG_NN_OP_MATMUL_H
#define TG_NN_OP_MATMUL_H

#include <stdbool.h>

struct tg_backend;

typedef void tg_op_matmul(struct tg_backend *be, float *out, const float *a, const float *b, int M,
                          int N, int K, bool ta, bool tb, bool accumulate, bool rounded);
typedef void tg_op_bias_forward(struct tg_backend *be, float *y, const float *b, int N, int C);
typedef void tg_op_bias_backward(struct tg_backend *be, float *db, const float *dy, int N, int C);

#endif
