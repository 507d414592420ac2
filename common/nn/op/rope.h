/* Rotary positions (Su et al. 2021), in place.
 *
 * Head h of row i lies at x[i*ld + h*step]. Its first R floats are R/2 pairs, each turned by its angle at positions[i]: floats j and
 * j + R/2 form pair j, or with `pairs` floats 2j and 2j + 1:
 *
 *     a' = a cos - b sin,  b' = b cos + a sin
 *
 * table: a row for each position, cos of the R/2 angles and then sin of them; it may carry a factor. inverse: the transposed map
 * (sin negated), which takes gradients back. positions (N) within the table (validated above). */
#ifndef TG_NN_OP_ROPE_H
#define TG_NN_OP_ROPE_H

#include <stdbool.h>
#include <stdint.h>

struct tg_backend;

typedef struct tg_rope_dims {
    int N, H, ld, step, R;
    bool pairs, inverse;
} tg_rope_dims;

typedef void tg_op_rope(struct tg_backend *be, float *x, const int32_t *positions,
                        const float *table, tg_rope_dims dims);

#endif
