/* The fused head. Rows are taken in chunks, the vocabulary in panels: a chunk's logits for one
 * panel are all that ever exists, unless all are to be kept.
 *
 * Panels, rather than chunks of rows with the whole vocabulary, because backward knows lse and
 * entropy already: then dw is written once per chunk of 2048 rows, where row chunks would stream
 * the V x C gradient through memory for every few rows. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <math.h>

/* Rows of logits lie a cache line further apart than they are long: at a power of two every row would fall into the same few places of
 * the caches, and a tile would not stay there until its gradient is taken. */
enum { ROWS = 2048, PANEL = 4096, LOGIT_FLOATS = 4 << 20, TILE = 256, GAP = 16 };
enum { LOGIT_ROOM = LOGIT_FLOATS + ROWS * GAP };

typedef struct row_stats {
    double top, sum, weighted;
} row_stats;

typedef struct head_job {
    const tg_cpu_kernels *k;
    float *space;  /* (rows, panel), or with kept logits the first row of them */
    float *logits; /* of the current panel, ld apart */
    size_t ld;
    const int32_t *tokens;
    const uint32_t *mask; /* of the first row; NULL: none */
    int panel, first;     /* columns of a panel; vocabulary index of the first */
    int parts;
    tg_softmax_part *part; /* (rows, parts) */
    row_stats *stats;      /* (rows) */
    float *token;          /* (rows): logit of the token */
    const float *lse, *entropy, *dlogp, *dentropy;
    float *out_logp, *out_entropy, *out_lse;
    tg_head_extra extra;
    int rows;
} head_job;

/* Columns of a panel for a chunk of `rows`: as many as the workspace holds. */
static int panel_columns(int rows, int V) {
    int cols = LOGIT_FLOATS / rows / TILE * TILE;
    return TG_MIN(TG_MIN(TG_MAX(cols, TILE), PANEL), V);
}

static void set_space(head_job *j, tg_backend *be, int i, int rows, int V) {
    j->panel = panel_columns(rows, V); /* kept or not: the same sums, bit by bit */
    j->space = j->extra.kept ? j->extra.kept + (size_t)i * (size_t)V
                             : tg_backend_scratch(be, LOGIT_ROOM * sizeof(float));
    j->ld = (size_t)(j->extra.kept ? V : j->panel + GAP);
}

/* Goes on to the panel that begins with token `first`; returns its columns. */
static int set_panel(head_job *j, int first, int V) {
    j->first = first;
    j->logits = j->space + (j->extra.kept ? first : 0);
    return TG_MIN(j->panel, V - first);
}

static tg_gemm logits_of(const head_job *j, const float *x, const float *w, int rows, int cols,
                         int C) {
    const tg_weight *packed = &j->extra.packed;
    const size_t before = (size_t)j->first; /* whole panels of what is packed too */
    tg_gemm g = {.c = j->logits,
                 .a = x,
                 .M = rows,
                 .N = cols,
                 .K = C,
                 .ldc = (int)j->ld,
                 .lda = C,
                 .ldb = C,
                 .tb = true,
                 .rounded = j->extra.rounded,
                 .tile_cols = TILE,
                 .arg = (void *)(uintptr_t)j};
    if (packed->form == TG_WEIGHT_PLAIN) {
        g.b = w + before * (size_t)C;
        return g;
    }
    g.half = packed->form == TG_WEIGHT_PACKED_BF16;
    g.packed = (const char *)packed->data + before * (size_t)tg_cpu_packed_depth(C, g.half) *
                                                (g.half ? sizeof(uint16_t) : sizeof(float));
    g.packed_depth = C;
    return g;
}

static tg_logit_tile logit_tile(const head_job *j, int m, int n, int rows, int cols) {
    return (tg_logit_tile){.logits = j->logits + (size_t)m * j->ld + n,
                           .ld = j->ld,
                           .rows = rows,
                           .first = j->first + n,
                           .cols = cols,
                           .tokens = j->tokens + m};
}

/* What is not allowed gets no probability. A tile's first token is the first of a word. */
static void mask_tile(const head_job *j, const tg_logit_tile *t, int m) {
    for (int r = 0; r < t->rows; r++) {
        const uint32_t *bits =
            j->mask + (size_t)(m + r) * (size_t)j->extra.mask_words + t->first / 32;
        float *row = t->logits + (size_t)r * t->ld;
        for (int c = 0; c < t->cols; c++)
            if (!(bits[c / 32] >> (c % 32) & 1)) row[c] = TG_HEAD_MASKED;
    }
}

/* Products become logits. m: the tile's first row. */
static void shape_tile(const head_job *j, const tg_logit_tile *t, int m) {
    const tg_head_extra *e = &j->extra;
    if (e->bias || e->softcap > 0)
        j->k->logit_shape(t, e->bias ? e->bias + t->first : NULL, e->softcap);
    if (j->mask) mask_tile(j, t, m);
}

static void stats_tile(void *arg, int m, int n, int rows, int cols) {
    const head_job *j = arg;
    tg_logit_tile t = logit_tile(j, m, n, rows, cols);
    shape_tile(j, &t, m);
    j->k->head_stats(&t, j->part + (size_t)m * j->parts + n / TILE, (size_t)j->parts, j->token + m);
}

/* Adds the parts of a panel to the running statistics, in order of the vocabulary. */
static void merge_parts(const head_job *j, int rows, int parts) {
    for (int r = 0; r < rows; r++) {
        row_stats s = j->stats[r];
        for (int i = 0; i < parts; i++) {
            tg_softmax_part p = j->part[(size_t)r * j->parts + i];
            double top = TG_MAX(s.top, (double)p.top);
            double fs = s.sum > 0 ? exp(s.top - top) : 0, fp = exp((double)p.top - top);
            double ds = s.sum > 0 ? s.top - top : 0, dp = (double)p.top - top;
            s.weighted =
                fs * (s.weighted + ds * s.sum) + fp * ((double)p.weighted + dp * (double)p.sum);
            s.sum = fs * s.sum + fp * (double)p.sum;
            s.top = top;
        }
        j->stats[r] = s;
    }
}

/* entropy = log Z - E[l - top], with Z relative to the top: no cancellation of large logits. */
static void finish_rows(const head_job *j, int rows) {
    for (int r = 0; r < rows; r++) {
        row_stats s = j->stats[r];
        double log_sum = log(s.sum);
        j->out_lse[r] = (float)(s.top + log_sum);
        j->out_logp[r] = (float)((double)j->token[r] - s.top - log_sum);
        j->out_entropy[r] = (float)(log_sum - s.weighted / s.sum);
    }
}

static void forward_chunk(tg_backend *be, head_job *j, const float *x, const float *w, int rows,
                          int C, int V) {
    for (int r = 0; r < rows; r++) j->stats[r] = (row_stats){-(double)INFINITY, 0, 0};
    for (int first = 0; first < V; first += j->panel) {
        int cols = set_panel(j, first, V);
        tg_gemm g = logits_of(j, x, w, rows, cols, C);
        g.after = stats_tile;
        tg_cpu_gemm(be, &g);
        merge_parts(j, rows, (cols + TILE - 1) / TILE);
    }
    finish_rows(j, rows);
}

/* What so many floats take in panels, or in pairs of bf16. */
static size_t panel_floats(size_t n, bool pairs) {
    return pairs ? (n + 1) / 2 : n;
}

size_t tg_cpu_scratch_used(const tg_scratch_sizes *s) {
    enum { PAGE = 2 << 20, STATS = 1 }; /* page of the statistics, behind the logits */
    const int chunk = TG_MAX(TG_MIN(s->actions, ROWS), 1), cols = panel_columns(chunk, s->V);
    const size_t logits = s->kept ? 1 : (size_t)chunk * (size_t)(cols + GAP) * sizeof(float);
    const size_t trunk = (size_t)s->rows * (size_t)s->width, head = (size_t)chunk * (size_t)cols;
    const bool pairs = tg_cpu_kernels_choose()->gemm_pairs != NULL;
    const size_t passes = TG_MAX(trunk, head), width = (size_t)s->width;
    const size_t most = TG_MAX(TG_MAX(panel_floats(passes, pairs && s->rounded),
                                      panel_floats((size_t)s->half_others * width, pairs)),
                               (size_t)s->others * width);
    const size_t panels = TG_MIN(most, (size_t)TG_CPU_GEMM_FLOATS) * sizeof(float);
    return ((logits + PAGE - 1) / PAGE + STATS + (panels + PAGE - 1) / PAGE) * PAGE;
}

void tg_cpu_head_forward(tg_backend *be, float *logp, float *entropy, float *lse, const float *x,
                         const float *w, const int32_t *tokens, int n, int C, int V,
                         tg_head_extra extra) {
    head_job j = {.k = be->kernels, .parts = PANEL / TILE, .extra = extra};
    for (int i = 0; i < n; i += ROWS) {
        int rows = TG_MIN(ROWS, n - i);
        char *at = tg_backend_scratch(be, TG_CPU_OP_FLOATS * sizeof(float));
        set_space(&j, be, i, rows, V);
        j.stats = (row_stats *)(at + LOGIT_ROOM * sizeof(float));
        j.token = (float *)(j.stats + ROWS);
        j.part = (tg_softmax_part *)(j.token + ROWS);
        TG_ASSERT((char *)(j.part + (size_t)rows * j.parts) <=
                  at + TG_CPU_OP_FLOATS * sizeof(float));
        j.tokens = tokens + i;
        if (extra.mask) j.mask = extra.mask + (size_t)i * (size_t)extra.mask_words;
        j.out_logp = logp + i, j.out_entropy = entropy + i, j.out_lse = lse + i;
        forward_chunk(be, &j, x + (size_t)i * C, w, rows, C, V);
    }
}

static void grad_tile(void *arg, int m, int n, int rows, int cols) {
    const head_job *j = arg;
    tg_logit_tile t = logit_tile(j, m, n, rows, cols);
    if (!j->extra.kept) shape_tile(j, &t, m); /* forward left them shaped */
    if (j->extra.softcap > 0)
        j->k->head_grad_capped(&t, j->lse + m, j->entropy + m, j->dlogp + m, j->dentropy + m,
                               j->extra.softcap);
    else
        j->k->head_grad(&t, j->lse + m, j->entropy + m, j->dlogp + m, j->dentropy + m);
}

static void grad_columns(void *arg, size_t first, size_t count) {
    const head_job *j = arg;
    grad_tile(arg, 0, (int)first, j->rows, (int)count);
}

static void bias_columns(void *arg, size_t first, size_t count) {
    const head_job *j = arg;
    j->k->column_sums(j->extra.dbias + (size_t)j->first + first, j->logits + first, j->rows, j->ld,
                      (int)count);
}

static void backward_chunk(tg_backend *be, head_job *j, float *dx, float *dw, const float *x,
                           const float *w, int rows, int C, int V) {
    j->rows = rows;
    for (int first = 0; first < V; first += j->panel) {
        const int cols = set_panel(j, first, V);
        const float *wp = w + (size_t)first * C;
        tg_gemm g = logits_of(j, x, w, rows, cols, C);
        g.after = grad_tile;
        if (j->extra.kept)
            tg_cpu_for(be, (size_t)cols, TILE, grad_columns, j);
        else
            tg_cpu_gemm(be, &g);
        if (j->extra.dbias) tg_cpu_for(be, (size_t)cols, TILE, bias_columns, j);
        tg_cpu_gemm(be, &(tg_gemm){.c = dx,
                                   .a = j->logits,
                                   .b = wp,
                                   .M = rows,
                                   .N = C,
                                   .K = cols,
                                   .ldc = C,
                                   .lda = (int)j->ld,
                                   .ldb = C,
                                   .rounded = j->extra.rounded,
                                   .accumulate = first > 0});
        if (!dw) continue;
        tg_cpu_gemm(be, &(tg_gemm){.c = dw + (size_t)first * C,
                                   .a = j->logits,
                                   .b = x,
                                   .M = cols,
                                   .N = C,
                                   .K = rows,
                                   .ldc = C,
                                   .lda = (int)j->ld,
                                   .ldb = C,
                                   .ta = true,
                                   .rounded = j->extra.rounded,
                                   .accumulate = true});
    }
}

void tg_cpu_head_backward(tg_backend *be, float *dx, float *dw, const float *dlogp,
                          const float *dentropy, const float *x, const float *w,
                          const int32_t *tokens, const float *lse, const float *entropy, int n,
                          int C, int V, tg_head_extra extra) {
    head_job j = {.k = be->kernels, .extra = extra};
    for (int i = 0; i < n; i += ROWS) {
        int rows = TG_MIN(ROWS, n - i);
        set_space(&j, be, i, rows, V);
        j.tokens = tokens + i;
        if (extra.mask) j.mask = extra.mask + (size_t)i * (size_t)extra.mask_words;
        j.lse = lse + i, j.entropy = entropy + i, j.dlogp = dlogp + i, j.dentropy = dentropy + i;
        backward_chunk(be, &j, dx + (size_t)i * C, dw, x + (size_t)i * C, w, rows, C, V);
    }
}
