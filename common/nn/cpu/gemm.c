/* Matrix products. The rows of a are packed into panels by the whole team; then tiles of the result are handed out, and each packs the
 * columns of b that it needs, panel by panel, unless they come packed. While one panel is multiplied the next one is fetched.
 *
 * Every element is summed over blocks of DEPTH, in order, and in order within them (kernels/gemm.c): it depends on its row of a and its
 * column of b alone, not on the number of threads, of rows, or on the tile it lies in. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

enum {
    DEPTH = 384,
    MAX_COLS = 32,    /* of a panel of b */
    TILE_ROWS = 448,  /* a block of a, rows by DEPTH, stays in the second cache */
    TILE_COLS = 512,  /* at most */
    TILES_WANTED = 24 /* enough that a late thread costs little */
};

typedef struct gemm_job {
    const tg_gemm *g;
    const tg_cpu_kernels *k;
    float *packed;   /* panels of a: rows [first, first + rows) */
    int first, rows; /* of this run */
    int panels;      /* that they are in */
    int groups;      /* that the panels are in */
    int tile_cols;   /* columns of a tile */
    int tiles_across;
    bool last; /* of the pieces of K */
} gemm_job;

/* Rows are spread over panels evenly: 16 rows are 8 and 8, not 14 and 2. */
static int panel_row(const gemm_job *j, int panel) {
    return (int)((int64_t)j->rows * panel / j->panels);
}

static void pack_panel(void *arg, int panel) {
    const gemm_job *j = arg;
    const tg_gemm *g = j->g;
    const int at = panel_row(j, panel), rows = panel_row(j, panel + 1) - at;
    const size_t row = (size_t)(j->first + at);
    j->k->pack_rows(j->packed + (size_t)at * (size_t)g->K,
                    g->a + (g->ta ? row : row * (size_t)g->lda), (size_t)g->lda, g->ta, rows, g->K);
}

/* Where op(b) (k, n) lies. */
static const float *b_at(const tg_gemm *g, int k, int n) {
    const size_t i = (size_t)(g->tb ? n : k), o = (size_t)(g->tb ? k : n);
    return g->b + i * (size_t)g->ldb + o;
}

/* The next panel of b is fetched while the first two panels of a, or the only one, meet the current one. Its rows, or with tb its
 * columns, are `ld` apart: they are taken in turn, a line of each. */
static tg_fetch look_ahead(const tg_gemm *g, const float *next, int i, int panels, int nr) {
    const size_t line = 64, ld = (size_t)g->ldb * sizeof(float), half = panels > 1 ? 0 : line;
    const char *at = (const char *)next;
    if (i > 1) return (tg_fetch){.at = at};
    if (!g->tb)
        return (tg_fetch){.at = at + (size_t)i * line, .pair = half, .step = ld, .jump = ld};
    const size_t lines =
        panels > 1 ? DEPTH / 2 * sizeof(float) : 0; /* each of the two takes half of them */
    return (tg_fetch){.at = at + (size_t)i * lines,
                      .pair = half,
                      .step = ld,
                      .jump = line + half - (size_t)(nr - 1) * ld,
                      .turn = nr - 1};
}

/* All rows of the tile with one panel of b. */
static void multiply_panel(const gemm_job *j, int p0, int p1, int n, int k, int depth,
                           const float *b, const float *next) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols, cols = TG_MIN(nr, g->N - n);
    tg_gemm_block block = {
        .ldc = (size_t)g->ldc, .b = b, .cols = cols, .depth = depth, .add = g->accumulate || k > 0};
    if (g->bias && k + depth == g->K && j->last) block.bias = g->bias + n;
    for (int p = p0; p < p1; p++) {
        const int at = panel_row(j, p);
        block.rows = panel_row(j, p + 1) - at;
        block.a = j->packed + (size_t)at * (size_t)g->K + (size_t)k * (size_t)block.rows;
        block.c = g->c + (size_t)(j->first + at) * (size_t)g->ldc + n;
        block.fetch = look_ahead(g, next, p - p0, p1 - p0, nr);
        j->k->gemm_block(&block);
    }
}

static void gemm_tile(void *arg, int tile) {
    const gemm_job *j = arg;
    const tg_gemm *g = j->g;
    const int group = tile / j->tiles_across, nr = *j->k->gemm_cols;
    const int p0 = (int)((int64_t)j->panels * group / j->groups),
              p1 = (int)((int64_t)j->panels * (group + 1) / j->groups);
    const int n0 = tile % j->tiles_across * j->tile_cols, n1 = TG_MIN(n0 + j->tile_cols, g->N);
    _Alignas(64) float panel[DEPTH * MAX_COLS];
    for (int k = 0; k < g->K; k += DEPTH) {
        const int depth = TG_MIN(DEPTH, g->K - k);
        for (int n = n0; n < n1; n += nr) {
            const bool more = n + nr < n1;
            j->k->pack_cols(panel, b_at(g, k, n), (size_t)g->ldb, g->tb, TG_MIN(nr, g->N - n),
                            depth);
            multiply_panel(j, p0, p1, n, k, depth, panel,
                           b_at(g, more ? k : TG_MIN(k + DEPTH, g->K - 1), more ? n + nr : n0));
        }
    }
    const int at = panel_row(j, p0);
    if (g->after && j->last) g->after(g->arg, j->first + at, n0, panel_row(j, p1) - at, n1 - n0);
}

static void choose_tiles(gemm_job *j) {
    const int nr = *j->k->gemm_cols, across = (j->g->N + nr - 1) / nr;
    j->groups = TG_MIN((j->rows + TILE_ROWS - 1) / TILE_ROWS, j->panels);
    j->tile_cols = j->g->tile_cols;
    if (!j->tile_cols)
        j->tile_cols = TG_MIN(TG_MAX(across * j->groups / TILES_WANTED, 1) * nr, TILE_COLS);
    j->tiles_across = (j->g->N + j->tile_cols - 1) / j->tile_cols;
}

/* One run: as many rows as the workspace holds. */
static void gemm_rows(tg_backend *be, gemm_job *j) {
    const int mr = *j->k->gemm_rows;
    j->panels = (j->rows + mr - 1) / mr;
    choose_tiles(j);
    tg_team_run(be->team, j->panels, pack_panel, j);
    tg_team_run(be->team, j->groups * j->tiles_across, gemm_tile, j);
}

static void clear(const tg_gemm *g) {
    for (int i = 0; i < g->M && !g->accumulate; i++)
        memset(g->c + (size_t)i * g->ldc, 0, (size_t)g->N * sizeof *g->c);
}

void tg_cpu_gemm(tg_backend *be, const tg_gemm *g) {
    enum { PIECE = 32 * DEPTH };
    if (g->M <= 0 || g->N <= 0) return;
    if (g->K <= 0) clear(g);
    for (int k = 0; k < g->K; k += PIECE) {
        tg_gemm piece = *g;
        piece.K = TG_MIN(PIECE, g->K - k);
        piece.a += g->ta ? (size_t)k * (size_t)g->lda : (size_t)k;
        piece.b = b_at(g, k, 0);
        piece.accumulate = g->accumulate || k > 0;
        const int most = TG_CPU_GEMM_FLOATS / piece.K, runs = (g->M + most - 1) / most;
        gemm_job j = {.g = &piece,
                      .k = be->kernels,
                      .packed = tg_cpu_gemm_scratch(be),
                      .last = k + piece.K == g->K};
        for (int r = 0; r < runs; r++) {
            j.first = (int)((int64_t)g->M * r / runs);
            j.rows = (int)((int64_t)g->M * (r + 1) / runs) - j.first;
            gemm_rows(be, &j);
        }
    }
}
