/* Softmax of tiles: the language-model head and attention. */
#include "common/nn/cpu/kernels/kernels_isa.h"

#include <math.h>

static inline float row_max(const float *x, int n) {
    float top = -INFINITY;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

void TG_KERNEL(head_stats)(const tg_logit_tile *t, tg_softmax_part *part, size_t ld_part,
                           float *token) {
    for (int r = 0; r < t->rows; r++) {
        const float *l = t->logits + (size_t)r * t->ld;
        const int n = t->cols, at = t->tokens[r] - t->first;
        const float top = row_max(l, n);
        float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
        for (int j = 0; j < n; j++) {
            float d = l[j] - top, e = exp_f32(d);
            sum += e;
            weighted += e * d;
        }
        part[(size_t)r * ld_part] = (tg_softmax_part){top, sum, weighted};
        if (at >= 0 && at < n) token[r] = l[at];
    }
}

/* op/head.h: dlogit_j = dlogp (1[j = token] - p_j) - dentropy p_j (log p_j + H). */
void TG_KERNEL(head_grad)(const tg_logit_tile *t, const float *lse, const float *entropy,
                          const float *dlogp, const float *dentropy) {
    for (int r = 0; r < t->rows; r++) {
        float *l = t->logits + (size_t)r * t->ld;
        const int n = t->cols, at = t->tokens[r] - t->first;
        const float z = lse[r], de = dentropy[r], dl = dlogp[r], h = entropy[r];
#pragma omp simd
        for (int j = 0; j < n; j++) {
            float lp = l[j] - z;
            l[j] = -exp_f32(lp) * (dl + de * (lp + h));
        }
        if (at >= 0 && at < n) l[at] += dl;
    }
}

static inline int visible(const tg_score_tile *t, int r) {
    if (!t->causal) return t->cols;
    int n = t->limit + r;
    return n < 0 ? 0 : n > t->cols ? t->cols : n;
}

static inline int padded(int n) {
    return (n + 15) & ~15;
}

void TG_KERNEL(softmax_tile)(const tg_score_tile *t, float *top, float *sum, float *fix) {
    const int width = padded(t->cols);
    for (int r = 0; r < t->rows; r++) {
        float *s = t->s + (size_t)r * t->ld;
        const int n = visible(t, r), m = padded(n);
        for (int j = n; j < width; j++) s[j] = -INFINITY;
        float high = -INFINITY, total = 0;
        if (n > 0) high = row_max(s, m) * t->scale;
        if (high < top[r] || n == 0) high = top[r];
        const float scale = t->scale;
#pragma omp simd reduction(+ : total)
        for (int j = 0; j < m; j++) {
            float e = exp_f32(s[j] * scale - high);
            s[j] = e;
            total += e;
        }
        for (int j = m; j < width; j++) s[j] = 0;
        fix[r] = top[r] == high ? 1.0f : exp_f32(top[r] - high);
        sum[r] = sum[r] * fix[r] + total;
        top[r] = high;
    }
}

void TG_KERNEL(softmax_grad_tile)(const tg_score_tile *t, float *dp, const float *lse,
                                  const float *delta) {
    const float scale = t->scale;
    for (int r = 0; r < t->rows; r++) {
        float *s = t->s + (size_t)r * t->ld, *d = dp + (size_t)r * t->ld;
        const int n = visible(t, r);
        const float z = lse[r], del = delta[r];
#pragma omp simd
        for (int j = 0; j < n; j++) {
            float p = exp_f32(s[j] * scale - z);
            s[j] = p;
            d[j] = scale * p * (d[j] - del);
        }
        for (int j = n; j < t->cols; j++) s[j] = d[j] = 0;
    }
}

float TG_KERNEL(dot)(const float *a, const float *b, int n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Keys in blocks of 256: a block's scores stay in the first cache, whatever the length. */
void TG_KERNEL(decode)(float *out, const float *q, const float *k, const float *v, int n, size_t ld,
                       int D, float scale) {
    enum { BLOCK = 256 };
    float s[BLOCK], top = -INFINITY, sum = 0, fix;
    for (int d = 0; d < D; d++) out[d] = 0;
    for (int j0 = 0; j0 < n; j0 += BLOCK) {
        const int m = n - j0 < BLOCK ? n - j0 : BLOCK;
        const float *kb = k + (size_t)j0 * ld, *vb = v + (size_t)j0 * ld;
        TG_KERNEL(dots)(s, 0, 1, q, 0, kb, ld, 1, m, D, false);
        tg_score_tile t = {.s = s, .ld = BLOCK, .rows = 1, .cols = m, .scale = scale};
        TG_KERNEL(softmax_tile)(&t, &top, &sum, &fix);
        if (j0 && fix != 1.0f) TG_KERNEL(scale)(out, fix, (size_t)D);
        TG_KERNEL(skinny)(out, 0, s, 0, vb, ld, 1, D, m, true);
    }
    if (n > 0) TG_KERNEL(scale)(out, 1.0f / sum, (size_t)D);
}
