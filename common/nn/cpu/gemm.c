/* Matrix products. The rows of a are packed into panels by the whole team; then tiles of the result are handed out, and each packs the
 * columns of b that it needs, panel by panel, unless they come packed. While one panel is multiplied the next one is fetched.
 *
 * Every element is summed over blocks of `depth`, in order, and in order within them (kernels/gemm.c): it depends on its row of a and its
 * column of b alone, not on the number of threads, of rows, or on the tile it lies in. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

enum {
    /* Words of a column in a panel of b, at most: c is read and written again for every block of them, which costs more than a panel
     * that only the second cache holds. */
    DEPTH = 1024,
    MAX_COLS = 32, /* of a panel of b */
    /* Rows of a tile, at most: if it is one panel of b wide (each row of tiles packs b again), or as wide as the caller wants. */
    TALL = 1792,
    WIDE = 448,
    FEW_PANELS = 4,  /* of a */
    ROW_STEPS = 128, /* of a panel of a are packed at a time */
    /* If a is transposed, so many of so many panels: a cache line holds more rows than a panel. */
    COLUMN_STEPS = 32,
    COLUMN_PANELS = 8,
    /* Panels of a: floats are made of a bf16 panel of b once, not for each of them. */
    WIDEN_FROM = 3,
    LINE = 64, /* bytes, of a cache */
    /* Rows; with fewer the processor runs ahead of what is packed by itself, and does so faster. */
    FETCH_FROM = 3,
    ROWS_ALONE = 16384 /* floats of a that are packed sooner than a team is woken */
};

typedef struct gemm_job {
    const tg_gemm *g;
    const tg_cpu_kernels *k;
    float *packed;   /* panels of a: rows [first, first + rows) */
    int first, rows; /* of this run */
    int panels;      /* that they are in */
    int together;    /* panels that are packed by one call */
    int groups;      /* that the panels are in */
    int tile_cols;   /* columns of a tile */
    int depth;       /* of a panel */
    int tiles_across;
    int threads;
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

/* Where op(a) (row, k) lies; rows count from the first of the run. */
static const float *a_at(const gemm_job *j, int row, int k) {
    const size_t m = (size_t)j->first + (size_t)row, lda = (size_t)j->g->lda;
    return j->g->a + (j->g->ta ? (size_t)k * lda + m : m * lda + (size_t)k);
}

/* The steps [k, k + steps) of a panel, of the block of `depth` steps that begins with `block`. */
static void pack_steps(const gemm_job *j, int panel, int block, int depth, int k, int steps) {
    const int at = panel_row(j, panel), rows = panel_row(j, panel + 1) - at;
    const size_t lda = (size_t)j->g->lda;
    float *to = packed_row(j, at, block, depth) + words(j, k - block) * (size_t)rows;
    if (j->pairs)
        j->k->pack_pairs((uint32_t *)(void *)to, a_at(j, at, k), lda, j->g->ta, rows, steps);
    else
        j->k->pack_rows(to, a_at(j, at, k), lda, j->g->ta, rows, steps);
    if (j->g->rounded && !j->pairs) j->k->round_bf16(to, (size_t)rows * (size_t)steps);
}

/* Fetches a part of a: what is packed next. Its rows are too short for the processor to find out by itself. */
static void fetch_a(const gemm_job *j, int row0, int row1, int k0, int k1) {
    if (k0 >= k1) return;
    const int outer = j->g->ta ? k1 - k0 : row1 - row0, inner = j->g->ta ? row1 - row0 : k1 - k0;
    const char *at = (const char *)a_at(j, row0, k0);
    for (int i = 0; i < outer; i++, at += (size_t)j->g->lda * sizeof(float))
        for (int o = 0; o < inner; o += LINE / (int)sizeof(float))
            __builtin_prefetch(at + (size_t)o * sizeof(float), 0, 3);
}

static void pack_panels(void *arg, int group) {
    const gemm_job *j = arg;
    const int K = j->g->K, p0 = group * j->together, p1 = TG_MIN(p0 + j->together, j->panels);
    const int row0 = panel_row(j, p0), row1 = panel_row(j, p1);
    const int steps = j->g->ta ? COLUMN_STEPS : ROW_STEPS;
    for (int block = 0; block < K; block += j->depth) {
        const int end = TG_MIN(block + j->depth, K);
        for (int k = block, next; k < end; k = next) {
            next = TG_MIN(k + steps, end);
            fetch_a(j, row0, row1, next, TG_MIN(next + steps, K));
            for (int p = p0; p < p1; p++) pack_steps(j, p, block, end - block, k, next - k);
        }
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

/* The panel at (k, n) is fetched while the last two panels of a, or the only one, meet the one before (if earlier, it would be gone
 * again from the second cache); a narrow panel, one line a step, while the last does. What is packed is one run of memory. Else the rows
 * of b, or with tb its columns, are taken in turn, a line of each; two lines where floats become pairs, because there are half as many
 * steps. */
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

/* All rows of the tile, panels [p0, p1), with one panel of b; if it is to be packed, the first of them do that. */
static void multiply_panel(const gemm_job *j, int p0, int p1, const place *at, const void *b,
                           bool half, float *pack) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols, fetching = TG_MAX(p1 - (is_narrow(j) ? 1 : 2), p0);
    tg_gemm_block block = {.ldc = (size_t)g->ldc,
                           .b = b,
                           .pack = pack,
                           .ldb = (size_t)g->ldb,
                           .half = half,
                           .cols = TG_MIN(nr, g->N - at->n),
                           .depth = at->depth,
                           .add = g->accumulate || at->k > 0,
                           .fetch = {.at = b}};
    if (g->bias && at->k + at->depth == g->K && j->last) block.bias = g->bias + at->n;
    for (int p = p0; p < p1; p++) {
        const int row = panel_row(j, p);
        block.rows = panel_row(j, p + 1) - row;
        block.a = packed_row(j, row, at->k, at->depth);
        block.c = g->c + (size_t)(j->first + row) * (size_t)g->ldc + at->n;
        /* Member by member: a copy of the whole would be loaded wider than it was stored, and wait for all stores before it. */
        if (p >= fetching && !(g->packed && j->rows < FETCH_FROM))
            look_ahead(&block.fetch, j, at->next_k, at->next_n, p - fetching, p1 - p0);
        if (j->pairs)
            j->k->gemm_pairs(&block);
        else
            j->k->gemm_block(&block);
        if (pack) block.b = pack, block.pack = NULL;
    }
}

static void gemm_panel(const gemm_job *j, int p0, int p1, const place *at) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols;
    _Alignas(64) float panel[DEPTH * MAX_COLS];
    if (g->packed) {
        const void *packed = packed_at(g, at->k, at->n, nr);
        const bool widen = g->half && !j->pairs && p1 - p0 >= WIDEN_FROM;
        if (widen) j->k->widen_cols(panel, packed, at->depth), packed = panel;
        multiply_panel(j, p0, p1, at, packed, g->half && !widen, NULL);
        return;
    }
    const float *from = b_at(g, at->k, at->n);
    const int cols = TG_MIN(nr, g->N - at->n);
    if (cols == nr && !g->tb && !g->rounded) {
        multiply_panel(j, p0, p1, at, from, false, panel);
        return;
    }
    if (j->pairs)
        j->k->pair_cols((uint32_t *)(void *)panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    else
        j->k->pack_cols(panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    if (g->rounded && !j->pairs) j->k->round_bf16(panel, (size_t)at->depth * (size_t)nr);
    multiply_panel(j, p0, p1, at, panel, false, NULL);
}

/* Panels of a [p0, p1), columns of b [n0, n1). */
typedef struct tile {
    int p0, p1, n0, n1;
} tile;

static tile tile_of(const gemm_job *j, int i) {
    const int group = i / j->tiles_across, n0 = i % j->tiles_across * j->tile_cols;
    return (tile){.p0 = (int)((int64_t)j->panels * group / j->groups),
                  .p1 = (int)((int64_t)j->panels * (group + 1) / j->groups),
                  .n0 = n0,
                  .n1 = TG_MIN(n0 + j->tile_cols, j->g->N)};
}

/* What this thread most likely does next, when all are as fast. */
static int next_column(const gemm_job *j, int i) {
    const int next = i + j->threads;
    return next < j->groups * j->tiles_across ? tile_of(j, next).n0 : 0;
}

static void gemm_tile(void *arg, int i) {
    const gemm_job *j = arg;
    const tg_gemm *g = j->g;
    const tile t = tile_of(j, i);
    const int nr = *j->k->gemm_cols;
    for (int k = 0; k < g->K; k += j->depth)
        for (int n = t.n0; n < t.n1; n += nr) {
            place at = {k, n, TG_MIN(j->depth, g->K - k), k, n + nr};
            if (n + nr >= t.n1) at.next_k = k + j->depth, at.next_n = t.n0;
            if (at.next_k >= g->K) at.next_k = 0, at.next_n = next_column(j, i);
            gemm_panel(j, t.p0, t.p1, &at);
        }
    const int row = panel_row(j, t.p0), rows = panel_row(j, t.p1) - row;
    if (g->after && j->last) g->after(g->arg, j->first + row, t.n0, rows, t.n1 - t.n0);
}

/* Few rows: two tiles for a thread, so that each reads long runs of b. Else one panel of b, so that a late thread costs little. The result
 * does not depend on it. */
static void choose_tiles(gemm_job *j) {
    const int nr = *j->k->gemm_cols, across = (j->g->N + nr - 1) / nr, turns = 2 * j->threads;
    const int rows = j->g->tile_cols ? WIDE : TALL;
    j->groups = TG_MIN((j->rows + rows - 1) / rows, j->panels);
    j->tile_cols = j->g->tile_cols           ? j->g->tile_cols
                   : j->panels <= FEW_PANELS ? (across + turns - 1) / turns * nr
                                             : nr;
    j->tiles_across = (j->g->N + j->tile_cols - 1) / j->tile_cols;
}

/* One run: as many rows as the workspace holds. */
static void gemm_rows(tg_backend *be, gemm_job *j) {
    const int mr = *j->k->gemm_rows;
    j->panels = (j->rows + mr - 1) / mr;
    choose_tiles(j);
    j->together = j->g->ta ? TG_MAX(TG_MIN(COLUMN_PANELS, j->panels / (2 * j->threads)), 1) : 1;
    const int groups = (j->panels + j->together - 1) / j->together;
    if (j->rows * j->g->K <= ROWS_ALONE)
        for (int i = 0; i < groups; i++) pack_panels(j, i);
    else
        tg_team_run(be->team, groups, pack_panels, j);
    tg_team_run(be->team, j->groups * j->tiles_across, gemm_tile, j);
}

static void clear(const tg_gemm *g) {
    for (int i = 0; i < g->M && !g->accumulate; i++)
        memset(g->c + (size_t)i * g->ldc, 0, (size_t)g->N * sizeof *g->c);
}

/* Blocks are as long as each other: 1100 steps are 550 and 550, not 1024 and 76. */
static int even_depth(int K, bool pairs) {
    const int most = pairs ? 2 * DEPTH : DEPTH, blocks = (K + most - 1) / most;
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
                      .depth = even_depth(piece.K, pairs),
                      .threads = tg_team_size(be->team),
                      .pairs = pairs};
        for (int r = 0; r < runs; r++) {
            j.first = (int)((int64_t)g->M * r / runs);
            j.rows = (int)((int64_t)g->M * (r + 1) / runs) - j.first;
            gemm_rows(be, &j);
        }
    }
}
