/* Rows by index.
 *
 * embed_forward:    y (N,C) = table[ids[i]], or += when accumulate. ids (N) within the table (validated above).
 * embed_backward:   dtable[ids[i]] += dy[i], rows of equal id added in order of i.
 * gather_rows:      y (n,C) = x[rows[i]].
 * scatter_add_rows: dx[rows[i]] += dy[i], in order of i.
 * put_rows:         y[rows[i]] = x[i] (n,C), f32 or with half bf16, rounded to nearest even; rows NULL: i. No row twice. */
#ifndef TG_NN_OP_EMBED_H
#define TG_NN_OP_EMBED_H

#include <stdbool.h>
#include <stdint.h>

struct tg_backend;

typedef void tg_op_embed_forward(struct tg_backend *be, float *y, const float *table,
                                 const int32_t *ids, int N, int C, bool accumulate);
typedef void tg_op_embed_backward(struct tg_backend *be, float *dtable, const float *dy,
                                  const int32_t *ids, int N, int C);
typedef void tg_op_gather_rows(struct tg_backend *be, float *y, const float *x, const int32_t *rows,
                               int n, int C);
typedef void tg_op_scatter_add_rows(struct tg_backend *be, float *dx, const float *dy,
                                    const int32_t *rows, int n, int C);
typedef void tg_op_put_rows(struct tg_backend *be, void *y, bool half, const float *x,
                            const int32_t *rows, int n, int C);

#endif
