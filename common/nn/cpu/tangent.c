/* Directional derivatives: a row, or a query and head, at a time. TRPO alone uses them, a few dozen times an iteration. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <math.h>

typedef struct mul_job {
    float *y;
    const float *x;
    tg_rms_dims d;
} mul_job;

/* y = act(g) u:  ty = act'(g) tg u + act(g) tu. tg's place then holds act(g). */
void tg_cpu_gated_tangent(tg_backend *be, float *ty, float *tx, const float *x, int N, int F,
                          tg_act kind) {
    const size_t n = (size_t)F;
    for (int i = 0; i < N; i++) {
        const float *g = x + 2 * (size_t)i * n, *u = g + n;
        float *tg = tx + 2 * (size_t)i * n, *tu = tg + n, *y = ty + (size_t)i * n;
        be->ops->act_backward(be, y, tg, g, n, kind);
        be->ops->act_forward(be, tg, g, n, kind);
        for (size_t c = 0; c < n; c++) y[c] = y[c] * u[c] + tg[c] * tu[c];
    }
}

static void mul_rows(void *arg, size_t first, size_t count) {
    const mul_job *j = arg;
    const tg_rms_dims *d = &j->d;
    for (size_t i = first; i < first + count; i++)
        for (int h = 0; h < d->H; h++) {
            float *y = j->y + i * (size_t)d->ld + (size_t)h * (size_t)d->step;
            for (int c = 0; c < d->C; c++) y[c] *= j->x[c] + d->offset;
        }
}

void tg_cpu_mul_heads(tg_backend *be, float *y, const float *gamma, tg_rms_dims dims) {
    tg_cpu_for(be, (size_t)dims.N, tg_cpu_grain(16384, dims.H * dims.C), mul_rows,
               &(mul_job){.y = y, .x = gamma, .d = dims});
}

/* ---- attention ---- */

typedef struct attn_job {
    float *tout;
    tg_attn_rows a, t;
    const float *tbias, *out, *lse;
    int stride, n_seqs;
    const int32_t *offsets;
    tg_attn_dims d;
} attn_job;

static float dot(const float *a, const float *b, int n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static int sequence_of(const attn_job *j, int row) {
    int lo = 0, hi = j->n_seqs - 1;
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (j->offsets[mid] <= row)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* tout += p (tv + ts v) */
static void add_value(float *tout, const float *v, const float *tv, float p, float pts, int D) {
#pragma omp simd
    for (int d = 0; d < D; d++) tout[d] += p * tv[d] + pts * v[d];
}

static void tangent_of(const attn_job *j, int i, int h) {
    const tg_attn_dims *d = &j->d;
    const int D = d->D, s = sequence_of(j, i), place = i - j->offsets[s];
    const int begin = d->k_begin ? d->k_begin[s] : j->offsets[s];
    const int end = d->k_end ? d->k_end[s] : d->causal ? i + 1 : j->offsets[s + 1];
    const size_t step = (size_t)(d->kv_stride ? d->kv_stride : j->stride);
    const size_t q =
        (size_t)i * (size_t)j->stride + (size_t)h * (size_t)(d->q_step ? d->q_step : D);
    const size_t head = (size_t)(h / (d->H / d->G)) * (size_t)(d->kv_step ? d->kv_step : D);
    const size_t row = (size_t)i * (size_t)d->H + (size_t)h;
    float *tout = j->tout + row * (size_t)D;
    double mean = 0;
    for (int c = 0; c < D; c++) tout[c] = 0;
    int from = d->window > 0 ? TG_MAX(begin, begin + place - d->window + 1) : begin;
    for (int k = from; k < end; k++) {
        const size_t at = (size_t)k * step + head;
        const int distance = place - (k - begin);
        float score = d->scale * dot(j->a.q + q, j->a.k + at, D);
        float ts = d->scale * (dot(j->t.q + q, j->a.k + at, D) + dot(j->a.q + q, j->t.k + at, D));
        if (d->softcap > 0) {
            float r = tanhf(score / d->softcap);
            score = d->softcap * r;
            ts *= 1 - r * r;
        }
        if (d->slopes) score -= d->slopes[h] * (float)distance;
        if (d->bias) {
            int near = TG_MIN(TG_MAX(distance, -d->reach), d->reach) + d->reach;
            score += d->bias[near * d->H + h];
            if (j->tbias) ts += j->tbias[near * d->H + h];
        }
        float p = expf(score - j->lse[row]);
        mean += (double)(p * ts);
        add_value(tout, j->a.v + at, j->t.v + at, p, p * ts, D);
    }
    const float *out = j->out + row * (size_t)D;
    for (int c = 0; c < D; c++) tout[c] -= (float)mean * out[c];
}

static void tangent_rows(void *arg, size_t first, size_t count) {
    const attn_job *j = arg;
    for (size_t i = first; i < first + count; i++)
        tangent_of(j, (int)(i / (size_t)j->d.H), (int)(i % (size_t)j->d.H));
}

void tg_cpu_attention_tangent(tg_backend *be, float *tout, tg_attn_rows value, tg_attn_rows tangent,
                              const float *tbias, const float *out, const float *lse, int stride,
                              const int32_t *offsets, int n_seqs, tg_attn_dims dims) {
    attn_job j = {tout, value, tangent, tbias, out, lse, stride, n_seqs, offsets, dims};
    size_t rows = (size_t)offsets[n_seqs] - (size_t)offsets[0];
    tg_cpu_for(be, rows * (size_t)dims.H, 8, tangent_rows, &j);
}

/* ---- the head ---- */

typedef struct fisher_job {
    float *mean, *to;
    const float *t, *l, *lse, *of_row, *weight; /* of_row: the means, read */
    int cols;
    float softcap;
} fisher_job;

static float capped_slope(float l, float softcap) {
    float r = softcap > 0 ? l / softcap : 0;
    return 1 - r * r;
}

static void mean_rows(void *arg, size_t first, size_t count) {
    const fisher_job *j = arg;
    for (size_t i = first; i < first + count; i++) {
        const float *l = j->l + i * (size_t)j->cols;
        const float *t = j->t + i * (size_t)j->cols;
        double sum = (double)j->mean[i];
        for (int c = 0; c < j->cols; c++)
            sum += (double)(expf(l[c] - j->lse[i]) * t[c] * capped_slope(l[c], j->softcap));
        j->mean[i] = (float)sum;
    }
}

void tg_cpu_fisher_mean(tg_backend *be, float *mean, const float *t, const float *l,
                        const float *lse, int n, int cols, float softcap) {
    fisher_job j = {.mean = mean, .t = t, .l = l, .lse = lse, .cols = cols, .softcap = softcap};
    tg_cpu_for(be, (size_t)n, 4, mean_rows, &j);
}

static void grad_rows(void *arg, size_t first, size_t count) {
    const fisher_job *j = arg;
    for (size_t i = first; i < first + count; i++) {
        const float *l = j->l + i * (size_t)j->cols;
        float *t = j->to + i * (size_t)j->cols;
        for (int c = 0; c < j->cols; c++) {
            float slope = capped_slope(l[c], j->softcap);
            t[c] = j->weight[i] * expf(l[c] - j->lse[i]) * (t[c] * slope - j->of_row[i]) * slope;
        }
    }
}

void tg_cpu_fisher_grad(tg_backend *be, float *t, const float *l, const float *lse,
                        const float *mean, const float *weight, int n, int cols, float softcap) {
    fisher_job j = {.to = t,
                    .l = l,
                    .lse = lse,
                    .of_row = mean,
                    .weight = weight,
                    .cols = cols,
                    .softcap = softcap};
    tg_cpu_for(be, (size_t)n, 4, grad_rows, &j);
}
