/* Matrix products by OpenBLAS, one call for each tile of the output.
 *
 * A tile spans the whole depth K, so that every element is summed by one call, and its size depends
 * on the shape alone: with any number of threads the same calls are made. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <cblas.h>
#include <string.h>

enum { TILE_MAX = 256, TILE_MIN = 32, TILES_WANTED = 8 };
#define TILE_FLOPS_MIN 2e6 /* about 20 us: well above the cost of handing out a tile */

void tg_cpu_gemm_tiling(int M, int N, int K, int *rows, int *cols) {
    int tm = TILE_MAX, tn = TILE_MAX;
    for (;;) {
        int m = TG_MIN(tm, M), n = TG_MIN(tn, N);
        const int across = (M + tm - 1) / tm, down = (N + tn - 1) / tn;
        double tiles = (double)across * down;
        if (tiles >= TILES_WANTED || 2.0 * m * n * K < 2 * TILE_FLOPS_MIN) break;
        if (n >= m && tn > TILE_MIN && N > TILE_MIN)
            tn = TG_MAX(TILE_MIN, TG_MIN(tn, (N + 15) & ~15) / 2 & ~15);
        else if (tm > TILE_MIN && M > TILE_MIN)
            tm = TG_MAX(TILE_MIN, TG_MIN(tm, (M + 15) & ~15) / 2 & ~15);
        else
            break;
    }
    *rows = tm;
    *cols = tn;
}

void tg_cpu_gemm_tile(const tg_gemm *g) {
    if (g->M <= 0 || g->N <= 0) return;
    if (g->K <= 0) {
        for (int i = 0; i < g->M && !g->accumulate; i++)
            memset(g->c + (size_t)i * g->ldc, 0, (size_t)g->N * sizeof *g->c);
        return;
    }
    cblas_sgemm(CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                g->M, g->N, g->K, 1.0f, g->a, g->lda, g->b, g->ldb, g->accumulate ? 1.0f : 0.0f,
                g->c, g->ldc);
}

typedef struct gemm_job {
    const tg_gemm *g;
    int rows, cols, across;
} gemm_job;

static void gemm_tile(void *arg, int tile) {
    const gemm_job *job = arg;
    const tg_gemm *g = job->g;
    int m = tile / job->across * job->rows, n = tile % job->across * job->cols;
    tg_gemm t = *g;
    t.M = TG_MIN(job->rows, g->M - m);
    t.N = TG_MIN(job->cols, g->N - n);
    t.a += g->ta ? (size_t)m : (size_t)m * (size_t)g->lda;
    t.b += g->tb ? (size_t)n * (size_t)g->ldb : (size_t)n;
    t.c += (size_t)m * (size_t)g->ldc + (size_t)n;
    tg_cpu_gemm_tile(&t);
    if (g->after) g->after(g->arg, m, n, t.M, t.N);
}

void tg_cpu_gemm(tg_backend *be, const tg_gemm *g) {
    if (g->M <= 0 || g->N <= 0) return;
    gemm_job job = {.g = g};
    tg_cpu_gemm_tiling(g->M, g->N, g->K, &job.rows, &job.cols);
    job.across = (g->N + job.cols - 1) / job.cols;
    tg_team_run(be->team, (g->M + job.rows - 1) / job.rows * job.across, gemm_tile, &job);
}
