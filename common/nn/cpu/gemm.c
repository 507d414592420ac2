/* Matrix products. Tiles of the result are handed out to the team; each packs the columns of b that it needs, panel by panel, unless they
 * come packed, and the rows of a that no other tile has packed yet. While one panel is multiplied the next one is fetched.
 *
 * Every element is summed over blocks of `depth`, in order, and in order within them (kernels/gemm.c): it depends on its row of a and its
 * column of b alone, not on the number of threads, of rows, or on the tile it lies in. */
#include "common/nn/cpu/gemm_rows.h"

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
    FEW_PANELS = 4, /* of a */
    /* Panels of a: floats are made of a bf16 panel of b once, not for each of them. */
    WIDEN_FROM = 3,
    LINE = 64, /* bytes, of a cache */
    /* Rows; with fewer the processor runs ahead of what is packed by itself, and does so faster. */
    FETCH_FROM = 3
};

typedef struct gemm_job {
    const tg_gemm *g;
    const tg_cpu_kernels *k;
    tg_gemm_rows *rows; /* of this run */
    int groups;         /* that their panels are in */
    int tile_cols;      /* columns of a tile */
    int tiles_across;
    int threads;
    bool last;  /* of the pieces of K */
    bool pairs; /* operands are packed as pairs of bf16 */
} gemm_job;

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
    const size_t ld = (size_t)g->ldb * sizeof(float), part = share * (size_t)(j->rows->depth / 2);
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

/* Panels of a [p0, p1), columns of b [n0, n1). `start`: the panels from there on come first. */
typedef struct tile {
    int p0, p1, start, n0, n1;
} tile;

/* Where in the matrices a panel of b stands, and the one after it. */
typedef struct place {
    int k, n, depth, next_k, next_n;
} place;

/* Member by member: a copy of the whole would be loaded wider than it was stored, and wait for all stores before it. */
static void fetch_nothing(tg_fetch *f, const void *at) {
    f->at = at;
    f->pair = f->step = f->jump = 0;
    f->turn = 0;
}

/* All rows of the tile with one panel of b; if it is to be packed, the first of them do that. */
static void multiply_panel(const gemm_job *j, const tile *t, const place *at, const void *b,
                           bool half, float *pack) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols, panels = t->p1 - t->p0;
    const int fetching = TG_MAX(panels - (is_narrow(j) ? 1 : 2), 0);
    const bool ahead = !(g->packed && j->rows->count < FETCH_FROM);
    tg_gemm_block block = {.ldc = (size_t)g->ldc,
                           .b = b,
                           .pack = pack,
                           .ldb = (size_t)g->ldb,
                           .half = half,
                           .cols = TG_MIN(nr, g->N - at->n),
                           .depth = at->depth,
                           .add = g->accumulate || at->k > 0};
    if (g->bias && at->k + at->depth == g->K && j->last) block.bias = g->bias + at->n;
    for (int i = 0, p = t->start, next; i < panels; i++, p = next) {
        next = p + 1 < t->p1 ? p + 1 : t->p0;
        const int row = tg_gemm_panel_row(j->rows, p);
        block.rows = tg_gemm_panel_row(j->rows, p + 1) - row;
        block.a = tg_gemm_panel(j->rows, p, at->k, at->depth);
        block.c = g->c + (size_t)(j->rows->first + row) * (size_t)g->ldc + at->n;
        fetch_nothing(&block.fetch, b);
        if (i >= fetching && ahead)
            look_ahead(&block.fetch, j, at->next_k, at->next_n, i - fetching, panels);
        else
            tg_gemm_panel_fetch(j->rows, next, at->k, &block.fetch);
        if (j->pairs)
            j->k->gemm_pairs(&block);
        else
            j->k->gemm_block(&block);
        if (pack) block.b = pack, block.pack = NULL;
    }
}

static void gemm_panel(const gemm_job *j, const tile *t, const place *at) {
    const tg_gemm *g = j->g;
    const int nr = *j->k->gemm_cols;
    _Alignas(64) float panel[DEPTH * MAX_COLS];
    if (g->packed) {
        const void *packed = packed_at(g, at->k, at->n, nr);
        const bool widen = g->half && !j->pairs && t->p1 - t->p0 >= WIDEN_FROM;
        if (widen) j->k->widen_cols(panel, packed, at->depth), packed = panel;
        multiply_panel(j, t, at, packed, g->half && !widen, NULL);
        return;
    }
    const float *from = b_at(g, at->k, at->n);
    const int cols = TG_MIN(nr, g->N - at->n);
    if (cols == nr && !g->tb && !g->rounded) {
        multiply_panel(j, t, at, from, false, panel);
        return;
    }
    if (j->pairs)
        j->k->pair_cols((uint32_t *)(void *)panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    else
        j->k->pack_cols(panel, from, (size_t)g->ldb, g->tb, cols, at->depth);
    if (g->rounded && !j->pairs) j->k->round_bf16(panel, (size_t)at->depth * (size_t)nr);
    multiply_panel(j, t, at, panel, false, NULL);
}

/* Neighbouring tiles begin with different panels, so that each packs some of them for all. */
static tile tile_of(const gemm_job *j, int i) {
    const int group = i / j->tiles_across, column = i % j->tiles_across;
    const int n0 = column * j->tile_cols, panels = j->rows->panels;
    tile t = {.p0 = (int)((int64_t)panels * group / j->groups),
              .p1 = (int)((int64_t)panels * (group + 1) / j->groups),
              .n0 = n0,
              .n1 = TG_MIN(n0 + j->tile_cols, j->g->N)};
    t.start = t.p0 + (t.p1 - t.p0) * (column % j->threads) / j->threads;
    return t;
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
    const int depth = j->rows->depth;
    for (int k = 0; k < g->K; k += depth)
        for (int n = t.n0; n < t.n1; n += nr) {
            place at = {k, n, TG_MIN(depth, g->K - k), k, n + nr};
            if (n + nr >= t.n1) at.next_k = k + depth, at.next_n = t.n0;
            if (at.next_k >= g->K) at.next_k = 0, at.next_n = next_column(j, i);
            gemm_panel(j, &t, &at);
        }
    const int row = tg_gemm_panel_row(j->rows, t.p0);
    const int rows = tg_gemm_panel_row(j->rows, t.p1) - row;
    if (g->after && j->last) g->after(g->arg, j->rows->first + row, t.n0, rows, t.n1 - t.n0);
}

/* Few rows: two tiles for a thread, so that each reads long runs of b. Else one panel of b, so that a late thread costs little. The result
 * does not depend on it. */
static void choose_tiles(gemm_job *j) {
    const int nr = *j->k->gemm_cols, across = (j->g->N + nr - 1) / nr, turns = 2 * j->threads;
    const int rows = j->g->tile_cols ? WIDE : TALL, panels = j->rows->panels;
    j->groups = TG_MIN((j->rows->count + rows - 1) / rows, panels);
    j->tile_cols = j->g->tile_cols        ? j->g->tile_cols
                   : panels <= FEW_PANELS ? (across + turns - 1) / turns * nr
                                          : nr;
    j->tiles_across = (j->g->N + j->tile_cols - 1) / j->tile_cols;
}

/* One run: rows [first, first + count). */
static void gemm_rows(tg_backend *be, gemm_job j, int first, int count, int depth) {
    const int mr = *j.k->gemm_rows;
    tg_gemm_rows rows = {.g = j.g,
                         .k = j.k,
                         .packed = tg_cpu_gemm_scratch(be),
                         .first = first,
                         .count = count,
                         .panels = (count + mr - 1) / mr,
                         .depth = depth,
                         .pairs = j.pairs};
    j.rows = &rows;
    choose_tiles(&j);
    tg_team_run(be->team, j.groups * j.tiles_across, gemm_tile, &j);
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

/* As many as the workspace holds, in as many pieces as are counted. */
static int most_rows(const gemm_job *j, int depth) {
    const int K = j->g->K, blocks = (K + depth - 1) / depth;
    return TG_MIN(TG_CPU_GEMM_FLOATS / (j->pairs ? (K + 1) / 2 : K),
                  TG_GEMM_PIECES / blocks * *j->k->gemm_rows);
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
        const gemm_job j = {.g = &piece,
                            .k = be->kernels,
                            .last = k + piece.K == g->K,
                            .threads = tg_team_size(be->team),
                            .pairs = pairs};
        const int depth = even_depth(piece.K, pairs), most = most_rows(&j, depth);
        const int runs = (g->M + most - 1) / most;
        for (int r = 0; r < runs; r++) {
            const int first = (int)((int64_t)g->M * r / runs);
            gemm_rows(be, j, first, (int)((int64_t)g->M * (r + 1) / runs) - first, depth);
        }
    }
}
