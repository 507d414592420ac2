/* Attention on packed sequences: (sequence, head) pairs are spread over the team; within one, tiles
 * of 32 queries meet blocks of 256 keys with a running softmax (Milakov & Gimelshein 2018), so that
 * a tile's scores fit on the stack and in the second cache whatever the length. Backward gives each
 * (sequence, key/value head) to one thread: nothing is shared but the gradient of a bias by distance, of which each pair makes its own. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

enum { QUERIES = TG_SCORE_LD, KEYS = 256, MAX_D = 512 };

typedef struct attn_job {
    const tg_cpu_kernels *kernels;
    float *out, *lse, *dq, *dk, *dv;
    float *dbias; /* (sequences from first_seq on, H, 2 reach + 1), or NULL */
    int first_seq;
    const float *q, *k, *v, *dout, *fwd_out, *fwd_lse;
    const int32_t *offsets;
    int stride;
    tg_attn_dims d;
} attn_job;

/* A sequence: its queries and its keys. */
typedef struct span {
    int seq, first, n; /* rows of queries */
    int k_first, k_n;  /* of keys */
} span;

static span span_of(const attn_job *j, int s) {
    const int first = j->offsets[s], n = j->offsets[s + 1] - first;
    if (!j->d.k_begin) return (span){s, first, n, first, n};
    return (span){s, first, n, j->d.k_begin[s], j->d.k_end[s] - j->d.k_begin[s]};
}

static size_t kv_stride(const attn_job *j) {
    return (size_t)(j->d.kv_stride ? j->d.kv_stride : j->stride);
}

/* Keys that the queries [i0, i0 + rows) of a sequence of n may see, counted from its start. */
static int keys_seen(const attn_job *j, int i0, int rows, int n) {
    return j->d.causal ? i0 + rows : n;
}

/* First of them: with a window, those before it are hidden from all. */
static int keys_skipped(const attn_job *j, int i0) {
    return j->d.window > 0 && i0 >= j->d.window ? i0 - j->d.window + 1 : 0;
}

static size_t q_at(const attn_job *j, int h) {
    return (size_t)h * (size_t)(j->d.q_step ? j->d.q_step : j->d.D);
}

static size_t kv_at(const attn_job *j, int h) {
    return (size_t)(h / (j->d.H / j->d.G)) * (size_t)(j->d.kv_step ? j->d.kv_step : j->d.D);
}

static bool is_shaped(const tg_attn_dims *d) {
    return d->softcap > 0 || d->slopes;
}

/* Where the bias of distance `near` lies in a row of one head's. */
static int bias_at(const tg_attn_dims *d, int near) {
    return (near > d->reach ? d->reach : near < -d->reach ? -d->reach : near) + d->reach;
}

/* Distance from the farthest key of a tile to its first query: where the tile's line of biases begins. */
static int line_start(const tg_score_tile *t) {
    return t->limit - t->cols;
}

static void add_bias(const attn_job *j, tg_score_tile *t, int h) {
    float line[KEYS + QUERIES];
    const int first = line_start(t);
    for (int m = 0; m < t->cols - 1 + QUERIES; m++)
        line[m] = j->d.bias[(size_t)bias_at(&j->d, first + m) * (size_t)j->d.H + (size_t)h];
    j->kernels->score_bias(t, line);
}

/* Adds the tile's score gradients ds to its sequence and head's own sums. */
static void add_bias_grad(const attn_job *j, const tg_score_tile *t, int seq, int h,
                          const float *ds) {
    float line[KEYS + QUERIES] = {0};
    const int first = line_start(t);
    const size_t width = 2 * (size_t)j->d.reach + 1;
    float *sums = j->dbias + ((size_t)(seq - j->first_seq) * (size_t)j->d.H + (size_t)h) * width;
    j->kernels->score_bias_grad(t, ds, line);
    for (int m = 0; m < t->cols - 1 + t->rows; m++) sums[bias_at(&j->d, first + m)] += line[m];
}

/* Products become scores; the tile's scale is then 1. */
static void shape_tile(const attn_job *j, tg_score_tile *t, int h, float *factor) {
    if (is_shaped(&j->d)) {
        j->kernels->score_shape(t, j->d.softcap, j->d.slopes ? j->d.slopes[h] : 0, factor);
        t->scale = 1;
    }
    if (j->d.bias) {
        add_bias(j, t, h);
        t->scale = 1;
    }
}

/* Gradients of scores become those of products. */
static void unshape_tile(const attn_job *j, const tg_score_tile *t, const span *s, int h, float *ds,
                         const float *factor) {
    if (j->dbias) add_bias_grad(j, t, s->seq, h, ds);
    if (is_shaped(&j->d))
        j->kernels->score_factor(t, ds, factor);
    else if (j->d.bias)
        j->kernels->scale(ds, j->d.scale, (size_t)t->cols * TG_SCORE_LD);
}

static tg_score_tile score_tile(const attn_job *j, float *s, int i0, int rows, int k0, int cols) {
    return (tg_score_tile){.s = s,
                           .rows = rows,
                           .cols = cols,
                           .limit = i0 - k0 + 1,
                           .window = j->d.window,
                           .causal = j->d.causal,
                           .scale = j->d.scale};
}

/* `rows` rows of D floats against `cols` keys: scores, transposed. `t` has the rows in blocks of 16. */
static void scores(const attn_job *j, float *s, const float *t, int rows, const float *keys,
                   int cols) {
    j->kernels->wide_scores(s, t, keys, kv_stride(j), rows, cols, j->d.D);
}

static void forward_queries(const attn_job *j, const span *sp, int h, int i0, int rows) {
    const int D = j->d.D, H = j->d.H;
    const size_t stride = (size_t)j->stride, base = (size_t)sp->first * stride;
    const size_t kvs = kv_stride(j), kv = (size_t)sp->k_first * kvs + kv_at(j, h);
    const size_t row = (size_t)(sp->first + i0) * (size_t)H + (size_t)h;
    float s[QUERIES * KEYS], top[QUERIES], sum[QUERIES], fix[QUERIES];
    float q[QUERIES * MAX_D];
    j->kernels->transpose16(q, j->q + base + (size_t)i0 * stride + q_at(j, h), stride, rows, D);
    for (int r = 0; r < QUERIES; r++) top[r] = -INFINITY, sum[r] = 0;
    float *out = j->out + row * (size_t)D;
    const int seen = keys_seen(j, i0, rows, sp->k_n), ldo = H * D;
    const int skipped = keys_skipped(j, i0);
    for (int k0 = skipped; k0 < seen; k0 += KEYS) {
        const int cols = TG_MIN(KEYS, seen - k0);
        const size_t at = kv + (size_t)k0 * kvs;
        scores(j, s, q, rows, j->k + at, cols);
        tg_score_tile t = score_tile(j, s, i0, rows, k0, cols);
        shape_tile(j, &t, h, NULL);
        j->kernels->softmax_tile(&t, top, sum, fix);
        for (int r = 0; k0 > skipped && r < rows; r++)
            j->kernels->scale(out + (size_t)r * ldo, fix[r], (size_t)D);
        j->kernels->skinny(out, (size_t)ldo, s, QUERIES, true, j->v + at, kvs, rows, D, cols,
                           k0 > skipped);
    }
    for (int r = 0; r < rows; r++) {
        j->kernels->scale(out + (size_t)r * ldo, 1.0f / sum[r], (size_t)D);
        j->lse[row + (size_t)r * H] = top[r] + logf(sum[r]);
    }
}

static void forward_pair(void *arg, int tile) {
    const attn_job *j = arg;
    const span s = span_of(j, tile / j->d.H);
    for (int i0 = 0; i0 < s.n; i0 += QUERIES)
        forward_queries(j, &s, tile % j->d.H, i0, TG_MIN(QUERIES, s.n - i0));
}

void tg_cpu_attention_forward(tg_backend *be, float *out, float *lse, const float *q,
                              const float *k, const float *v, int stride, const int32_t *offsets,
                              int n_seqs, tg_attn_dims dims) {
    TG_ASSERT(dims.D <= MAX_D);
    attn_job j = {.kernels = be->kernels,
                  .out = out,
                  .lse = lse,
                  .q = q,
                  .k = k,
                  .v = v,
                  .offsets = offsets,
                  .stride = stride,
                  .d = dims};
    tg_team_run(be->team, n_seqs * dims.H, forward_pair, &j);
}

/* dq += ds k;  dk += ds^T q;  dv += p^T dout;  p = exp(scale q k^T - lse), ds = scale p (dout v^T - dout . out). */
static void backward_queries(const attn_job *j, const span *sp, int h, int i0, int rows) {
    const tg_cpu_kernels *k = j->kernels;
    const int D = j->d.D, H = j->d.H, ldo = H * D;
    const size_t stride = (size_t)j->stride, base = (size_t)sp->first * stride;
    const size_t kvs = kv_stride(j), kv = (size_t)sp->k_first * kvs + kv_at(j, h);
    const size_t qi = base + (size_t)i0 * stride + q_at(j, h);
    const size_t row = (size_t)(sp->first + i0) * (size_t)H + (size_t)h;
    const float *dout = j->dout + row * (size_t)D;
    float p[QUERIES * KEYS], ds[QUERIES * KEYS], factor[QUERIES * KEYS], lse[QUERIES] = {0},
                                                                         delta[QUERIES] = {0};
    float q[QUERIES * MAX_D], d[QUERIES * MAX_D];
    k->transpose16(q, j->q + qi, stride, rows, D);
    k->transpose16(d, dout, (size_t)ldo, rows, D);
    for (int r = 0; r < rows; r++) {
        size_t at = row + (size_t)r * H;
        lse[r] = j->fwd_lse[at];
        delta[r] = k->dot(j->dout + at * (size_t)D, j->fwd_out + at * (size_t)D, D);
    }
    const int seen = keys_seen(j, i0, rows, sp->k_n);
    const int skipped = keys_skipped(j, i0);
    for (int k0 = skipped; k0 < seen; k0 += KEYS) {
        const int cols = TG_MIN(KEYS, seen - k0);
        const size_t at = kv + (size_t)k0 * kvs;
        scores(j, p, q, rows, j->k + at, cols);
        scores(j, ds, d, rows, j->v + at, cols);
        tg_score_tile t = score_tile(j, p, i0, rows, k0, cols);
        shape_tile(j, &t, h, factor);
        k->softmax_grad_tile(&t, ds, lse, delta);
        unshape_tile(j, &t, sp, h, ds, factor);
        k->skinny(j->dq + qi, stride, ds, QUERIES, true, j->k + at, kvs, rows, D, cols, true);
        k->skinny(j->dk + at, kvs, ds, QUERIES, false, j->q + qi, stride, cols, D, rows, true);
        k->skinny(j->dv + at, kvs, p, QUERIES, false, dout, (size_t)ldo, cols, D, rows, true);
    }
}

static void backward_pair(void *arg, int tile) {
    const attn_job *j = arg;
    const int g = tile % j->d.G, group = j->d.H / j->d.G;
    const span s = span_of(j, j->first_seq + tile / j->d.G);
    for (int h = g * group; h < (g + 1) * group; h++)
        for (int i0 = 0; i0 < s.n; i0 += QUERIES)
            backward_queries(j, &s, h, i0, TG_MIN(QUERIES, s.n - i0));
}

/* Sequences in groups whose sums fit the workspace; they are added in order. */
static void backward_biased(tg_backend *be, attn_job *j, int n_seqs) {
    const size_t H = (size_t)j->d.H, width = 2 * (size_t)j->d.reach + 1;
    const int group = (int)TG_MIN((size_t)n_seqs, TG_CPU_OP_FLOATS / (H * width));
    TG_ASSERT(group > 0);
    j->dbias = tg_backend_scratch(be, (size_t)group * H * width * sizeof(float));
    for (j->first_seq = 0; j->first_seq < n_seqs; j->first_seq += group) {
        const int n = TG_MIN(group, n_seqs - j->first_seq);
        memset(j->dbias, 0, (size_t)n * H * width * sizeof(float));
        tg_team_run(be->team, n * j->d.G, backward_pair, j);
        for (size_t i = 0; i < (size_t)n * H; i++)
            for (size_t m = 0; m < width; m++) j->d.dbias[m * H + i % H] += j->dbias[i * width + m];
    }
}

void tg_cpu_attention_backward(tg_backend *be, float *dq, float *dk, float *dv, const float *dout,
                               const float *out, const float *lse, const float *q, const float *k,
                               const float *v, int stride, const int32_t *offsets, int n_seqs,
                               tg_attn_dims dims) {
    TG_ASSERT(dims.D <= MAX_D);
    attn_job j = {.kernels = be->kernels,
                  .dq = dq,
                  .dk = dk,
                  .dv = dv,
                  .dout = dout,
                  .fwd_out = out,
                  .fwd_lse = lse,
                  .q = q,
                  .k = k,
                  .v = v,
                  .offsets = offsets,
                  .stride = stride,
                  .d = dims};
    if (dims.bias && dims.dbias)
        backward_biased(be, &j, n_seqs);
    else
        tg_team_run(be->team, n_seqs * dims.G, backward_pair, &j);
}
