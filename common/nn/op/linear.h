/* Linear layers: a matrix product whose second operand is a weight, which may be kept in a form made for it.
 *
 * linear:      y (M,N) = x (M,K) op(w) + bias, or += when accumulate; bias (N) or NULL. A row of y depends on that row of x alone: the
 *              same bits for any M, any number of threads and both f32 forms.
 * weight_pack: the weight w, (K,N) or with tb (N,K), into tg_weight_bytes(N, K, form) bytes at `packed`; form is not PLAIN.
 * weight_rows: y (n,K) = columns ids[i] of op(w), which is packed or has tb: rows of an embedding. ids (n) within N (validated above).
 *
 * bf16 is rounded to nearest even; sums are f32. With bf16 weights x is rounded too where the machine multiplies bf16 by bf16 (cpu:
 * avx512_bf16); else it stays f32. With `rounded` both are, everywhere, as in op/matmul.h. x aliases nothing. */
#ifndef TG_NN_OP_LINEAR_H
#define TG_NN_OP_LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tg_backend;

typedef enum tg_weight_form {
    TG_WEIGHT_PLAIN,      /* f32, as the model stores it */
    TG_WEIGHT_PACKED,     /* f32, in the order in which the backend reads it */
    TG_WEIGHT_PACKED_BF16 /* so with 2 bytes each */
} tg_weight_form;

typedef struct tg_weight {
    const void *data; /* 64-byte aligned */
    tg_weight_form form;
    bool tb;      /* PLAIN: stored (N,K) */
    bool rounded; /* not PACKED: the product rounds both operands to bf16 */
} tg_weight;

/* Columns are rounded up to 32, rows of bf16 to pairs. */
static inline size_t tg_weight_bytes(int N, int K, tg_weight_form form) {
    const size_t columns = ((size_t)N + 31) / 32 * 32;
    return form == TG_WEIGHT_PACKED_BF16 ? columns * (((size_t)K + 1) / 2) * 4
                                         : columns * (size_t)K * 4;
}

typedef void tg_op_linear(struct tg_backend *be, float *y, const float *x, tg_weight w,
                          const float *bias, int M, int N, int K, bool accumulate);
typedef void tg_op_weight_pack(struct tg_backend *be, void *packed, const float *w, int N, int K,
                               bool tb, tg_weight_form form);
typedef void tg_op_weight_rows(struct tg_backend *be, float *y, tg_weight w, const int32_t *ids,
                               int n, int N, int K);

#endif
