/* Matrix products. The rows of a are packed into panels by the whole team; then tiles of the result are handed out, and each packs the
 * columns of b that it needs, panel by panel, unless they come packed. While one panel is multiplied the next one is fetched.
 *
 * Every element is summed over blocks of `depth`, in order, and in order within them (kernels/gemm.c): it depends on its row of a and its
 * column of b alone, not on the number of threads, of rows, or on the tile it lies in. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

enum {
    DEPTH = 384,
    PAIRS_DEPTH = 768, /* at most */
    MAX_COLS = 32,     /* of a panel of b */
    TILE_ROWS = 448,   /* a block of a, rows by depth, stays in the second cache */
    TILE_COLS = 512,   /* at most */
    TILES_WANTED = 8,  /* for each thread: enough that a late one costs little */
    FEW_PANELS = 4,
    WIDEN_FROM =
        3,     /* panels of a: floats are made of a bf16 panel of b once, not for each of them */
    LINE = 64, /* bytes, of a cache */
    FETCH_FROM =
        3, /* rows; with fewer the processor runs ahead of what is packed by itself, and does so faster */
    ROWS_ALONE = 16384 /* floats of a that are packed sooner than a team is woken */
};

typedef struct gemm_job {
    const tg_gemm *g;
    const tg_cpu_kernels *k;
    float *packed;   /* panels of a: rows [first, first + rows) */
    int first, rows; /* of this run */
    int panels;      /* that they are in */
    int groups;      /* that the panels are in */
    int tile_cols;   /* columns of a tile */
    int depth;       /* of a panel */
    int tiles_across;
    bool last;  /* of the pieces of K */
    bool pairs; /* rows are packed as pairs of bf16 */
} gemm_job;

/* Rows are spread over panels evenly: 16 rows are 8 and 8, not 14 and 2. */
static int panel_row(const gemm_job *j, int panel) {
    return (int)((int64_t)j->rows * panel / j->panels);
}

/* Words of `steps` steps of a packed row: floats, or pairs. */
static size_t words(const gemm_job *j, int steps) {
    return j->pairs ? ((size_t)steps + 1) / 2 : (size_t)steps;
}

/* The panels of one block of `depth` steps lie behind each other: what is read ahead at the end of a panel is the next one. */
static float *packed_row(const gemm_job *j, int row, int k, int depth) {
    return j->packed + words(j, k) * (size_t)j->rows + (size_t)row * words(j, depth);
}

static void pack_panel(void *arg, int panel) {
    const gemm_job *j = arg;
    const tg_gemm *g = j->g;
    const int at = panel_row(j, panel), rows = panel_row(j, panel + 1) - at;
    const size_t row = (size_t)j->first + (size_t)at, lda = (size_t)g->lda;
    for (int k = 0; k < g->K; k += j->depth) {
        const int depth = TG_MIN(j->depth, g->K - k);
        const float *from = g->a + (g->ta ? (size_t)k * lda + row : row * lda + (size_t)k);
        float *to = packed_row(j, at, k, depth);
        if (j->pairs)
            j->k->pack_pairs((uint32_t *)(void *)to, from, lda, g->ta, rows, depth);
        else
            j->k->pack_rows(to, from, lda, g->ta, rows, depth);
        if (g->rounded && !j->pairs) j->k->round_bf16(to, (size_t)rows * (size_t)depth);
    }
}

/* Where op(b) (k, n) lies. */
static const float *b_at(const tg_gemm *g, int k, int n) {
    const size_t i = (size_t)(g->tb ? n : k), o = (size_t)(g->tb ? k : n);
    return g->b + i * (size_t)g->ldb + o;
}

/* A panel of b: the columns from n on, rows from k on. */
static const char *packed_at(const tg_gemm *g, int k, int n, int nr) {
    const size_t depth = (size_t)tg_cpu_packed_depth(g->packed_depth, g->half);
    const size_t at = ((size_t)(n / nr) * depth + (size_t)k) * (size_t)nr;
    return (const char *)g->packed + at * (g->half ? sizeof(uint16_t) : sizeof(float));
}

/* A step of a panel of b is one cache line. */
static bool is_narrow(const gemm_job *j) {
    return (size_t)*j->k->gemm_cols * sizeof(float) <= LINE;
}

/* The panel at (k, n) is fetched while the first two panels of a, or the only one, meet the one before; a narrow panel, one line a step,
 * while the first does. What is packed is one run of memory. Else the rows of b, or with tb its columns, are taken in turn, a line of
 * each; two lines where floats become pairs, because there are half as many steps. */
static void look_ahead(tg_fetch *f, const gemm_job *j, int k, int n, int i, int panels) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols;
    const bool twice = j->pairs && !g->packed, alone = panels == 1 || is_narrow(j);
    const size_t line = LINE, half = is_narrow(j) || (!alone && !twice) ? 0 : line;
    const size_t share = alone ? 0 : i;
    const size_t ld = (size_t)g->ldb * sizeof(float), part = share * (size_t)(j->depth / 2);
    f->pair = half;
    if (g->packed) {
        /* half of a panel that is 32 floats wide; a bf16 panel is half as large and has half the steps */
        f->at = packed_at(g, k, n, nr) + part * line * (g->half ? 1 : 2);
        f->step = f->jump = line + half;
    } else if (!g->tb) {
        f->at = (const char *)b_at(g, k, n) + (twice ? part * ld : share * line);
        f->step = f->jump = ld;
    } else {
        f->at = (const char *)b_at(g, k, n) + part * sizeof(float);
        f->step = ld;
        f->jump = line + half - (size_t)(nr - 1) * ld;
        f->turn = nr - 1;
    }
}

/* Where in the matrices a panel of b stands, and the one after it. */
typedef struct place {
    int k, n, depth, next_k, next_n;
} place;

/* All rows of the tile, panels [p0, p1), with one panel of b. */
static void multiply_panel(const gemm_job *j, int p0, int p1, const place *at, const void *b,
                           bool half) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols;
    tg_gemm_block block = {.ldc = (size_t)g->ldc,
                           .b = b,
                           .half = half,
                           .cols = TG_MIN(nr, g->N - at->n),
                           .depth = at->depth,
                           .add = g->accumulate || at->k > 0};
    if (g->bias && at->k + at->depth == g->K && j->last) block.bias = g->bias + at->n;
    for (int p = p0; p < p1; p++) {
        const int row = panel_row(j, p);
        block.rows = panel_row(j, p + 1) - row;
        block.a = packed_row(j, row, at->k, at->depth);
        block.c = g->c + (size_t)(j->first + row) * (size_t)g->ldc + at->n;
        /* Member by member: a copy of the whole would be loaded wider than it was stored, and wait for all stores before it. */
        if (p - p0 < (is_narrow(j) ? 1 : 2) && !(g->packed && j->rows < FETCH_FROM))
            look_ahead(&block.fetch, j, at->next_k, at->next_n, p - p0, p1 - p0);
        else if (p - p0 < 3)
            memset(&block.fetch, 0, sizeof block.fetch), block.fetch.at = b;
        if (j->pairs)
            j->k->gemm_pairs(&block);
        else
            j->k->gemm_block(&block);
    }
}

static void gemm_panel(const gemm_job *j, int p0, int p1, const place *at) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols;
    _Alignas(64) float panel[DEPTH * MAX_COLS]; /* or PAIRS_DEPTH / 2 words for each column */
    if (g->packed) {
        const void *packed = packed_at(g, at->k, at->n, nr);
        const bool widen = g->half && !j->pairs && p1 - p0 >= WIDEN_FROM;
        if (widen) j->k->widen_cols(panel, packed, at->depth), packed = panel;
        multiply_panel(j, p0, p1, at, packed, g->half && !widen);
        return;
    }
    const float *from = b_at(g, at->k, at->n);
    const int cols = TG_MIN(nr, g->N - at->n);
    if (j->pairs)
        j->k->pair_cols((uint32_t *)(void *)panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    else
        j->k->pack_cols(panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    if (g->rounded && !j->pairs) j->k->round_bf16(panel, (size_t)at->depth * (size_t)nr);
    multiply_panel(j, p0, p1, at, panel, false);
}

static void gemm_tile(void *arg, int tile) {
    const gemm_job *j = arg;
    const tg_gemm *g = j->g;
    const int group = tile / j->tiles_across, nr = *j->k->gemm_cols;
    const int p0 = (int)((int64_t)j->panels * group / j->groups);
    const int p1 = (int)((int64_t)j->panels * (group + 1) / j->groups);
    const int n0 = tile % j->tiles_across * j->tile_cols, n1 = TG_MIN(n0 + j->tile_cols, g->N);
    for (int k = 0; k < g->K; k += j->depth)
        for (int n = n0; n < n1; n += nr) {
            place at = {k, n, TG_MIN(j->depth, g->K - k), k, n + nr};
            if (n + nr >= n1) at.next_k = TG_MIN(k + j->depth, g->K - 1), at.next_n = n0;
            gemm_panel(j, p0, p1, &at);
        }
    const int row = panel_row(j, p0);
    if (g->after && j->last) g->after(g->arg, j->first + row, n0, panel_row(j, p1) - row, n1 - n0);
}

/* Few rows: two tiles for a thread, because the first panel of a tile is fetched by nobody. The result does not depend on it. */
static void choose_tiles(gemm_job *j, int threads) {
    const int nr = *j->k->gemm_cols, across = (j->g->N + nr - 1) / nr;
    j->groups = TG_MIN((j->rows + TILE_ROWS - 1) / TILE_ROWS, j->panels);
    j->tile_cols = j->g->tile_cols;
    if (!j->tile_cols)
        j->tile_cols =
            j->panels <= FEW_PANELS
                ? (across + 2 * threads - 1) / (2 * threads) * nr
                : TG_MIN(TG_MAX(across * j->groups / (TILES_WANTED * threads), 1) * nr, TILE_COLS);
    j->tiles_across = (j->g->N + j->tile_cols - 1) / j->tile_cols;
}

/* One run: as many rows as the workspace holds. */
static void gemm_rows(tg_backend *be, gemm_job *j) {
    const int mr = *j->k->gemm_rows;
    j->panels = (j->rows + mr - 1) / mr;
    choose_tiles(j, tg_team_size(be->team));
    if (j->rows * j->g->K <= ROWS_ALONE)
        for (int p = 0; p < j->panels; p++) pack_panel(j, p);
    else
        tg_team_run(be->team, j->panels, pack_panel, j);
    tg_team_run(be->team, j->groups * j->tiles_across, gemm_tile, j);
}

static void clear(const tg_gemm *g) {
    for (int i = 0; i < g->M && !g->accumulate; i++)
        memset(g->c + (size_t)i * g->ldc, 0, (size_t)g->N * sizeof *g->c);
}

/* Blocks of pairs are as long as each other: 896 steps are 448 and 448, not 768 and 128. */
static int even_depth(int K) {
    const int blocks = (K + PAIRS_DEPTH - 1) / PAIRS_DEPTH;
    return ((K + blocks - 1) / blocks + 1) & ~1;
}

void tg_cpu_gemm(tg_backend *be, const tg_gemm *g) {
    enum { PIECE = 32 * DEPTH };
    if (g->M <= 0 || g->N <= 0) return;
    const bool pairs = (g->half || g->rounded) && be->kernels->gemm_pairs;
    TG_ASSERT(!(g->rounded && g->packed && !g->half));
    if (g->K <= 0) clear(g);
    for (int k = 0; k < g->K; k += PIECE) {
        tg_gemm piece = *g;
        piece.K = TG_MIN(PIECE, g->K - k);
        piece.a += g->ta ? (size_t)k * (size_t)g->lda : (size_t)k;
        if (g->packed)
            piece.packed = packed_at(g, k, 0, *be->kernels->gemm_cols);
        else
            piece.b = b_at(g, k, 0);
        piece.accumulate = g->accumulate || k > 0;
        const int row = pairs ? (piece.K + 1) / 2 : piece.K;
        const int most = TG_CPU_GEMM_FLOATS / row, runs = (g->M + most - 1) / most;
        gemm_job j = {.g = &piece,
                      .k = be->kernels,
                      .packed = tg_cpu_gemm_scratch(be),
                      .last = k + piece.K == g->K,
                      .depth = pairs ? even_depth(piece.K) : DEPTH,
                      .pairs = pairs};
        for (int r = 0; r < runs; r++) {
            j.first = (int)((int64_t)g->M * r / runs);
            j.rows = (int)((int64_t)g->M * (r + 1) / runs) - j.first;
            gemm_rows(be, &j);
        }
    }
}
