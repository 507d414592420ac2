/* The rows of a that a matrix product is made of, in panels. A panel is packed by the first tile that needs it, just before it is
 * multiplied, while the processor still holds it; the next one is fetched meanwhile. Private to gemm.c. */
#ifndef TG_NN_CPU_GEMM_ROWS_H
#define TG_NN_CPU_GEMM_ROWS_H

#include "common/nn/cpu/cpu.h"

#include <stdatomic.h>

/* Pieces that are packed by themselves, at most: a panel of one block of steps. */
enum { TG_GEMM_PIECES = 4096 };

typedef struct tg_gemm_rows {
    const tg_gemm *g;
    const tg_cpu_kernels *k;
    float *packed; /* panels of a: rows [first, first + count) */
    int first, count;
    int panels; /* that they are in */
    int depth;  /* steps of a block, at most */
    bool pairs; /* packed as pairs of bf16 */
    _Alignas(64)
        atomic_uchar piece[TG_GEMM_PIECES]; /* what has become of it, see gemm_rows.c; 0 at first */
} tg_gemm_rows;

/* The first row of a panel. Rows are spread over panels evenly: 16 rows are 8 and 8, not 14 and 2. */
static inline int tg_gemm_panel_row(const tg_gemm_rows *r, int panel) {
    return (int)((int64_t)r->count * panel / r->panels);
}

/* A panel of the `depth` steps from k on, packed, by this thread or by another one. */
const float *tg_gemm_panel(tg_gemm_rows *r, int panel, int k, int depth);
/* What to fetch while other panels are multiplied, if that one is still to be packed; else f is left alone. */
void tg_gemm_panel_fetch(const tg_gemm_rows *r, int panel, int k, tg_fetch *f);

#endif
