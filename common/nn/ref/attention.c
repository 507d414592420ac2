/* Attention, naive: a score is computed again wherever it is needed, so that no buffer exists. */
#include "common/nn/ref/ref.h"

#include "common/nn/bf16.h"

#include <math.h>

static double dot(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* One query and head: what its scores depend on. Key 0 lies `distance` rows before the query; rows are `step` floats apart. */
typedef struct query {
    const float *q, *k, *v;
    const uint16_t *half_k, *half_v; /* in place of k and v, or NULL */
    int first, end, distance, D;     /* keys seen */
    size_t step;
    double scale, softcap, slope;
    const float *
        bias; /* of this head, or NULL; at distance i - j, clamped to reach: bias[(distance + reach) * H] */
    int reach, H;
} query;

static query query_of(const tg_attn_dims *d, int h, int n, int distance) {
    bool alibi = d->slopes != NULL;
    int first = d->window > 0 && distance >= d->window ? distance - d->window + 1 : 0;
    return (query){.first = first,
                   .end = n,
                   .distance = distance,
                   .D = d->D,
                   .scale = (double)d->scale,
                   .softcap = (double)d->softcap,
                   .slope = alibi ? (double)d->slopes[h] : 0,
                   .bias = d->bias ? d->bias + h : NULL,
                   .reach = d->reach,
                   .H = d->H};
}

static size_t bias_at(const query *a, int j) {
    int distance = a->distance - j;
    if (distance > a->reach) distance = a->reach;
    if (distance < -a->reach) distance = -a->reach;
    return (size_t)(distance + a->reach) * (size_t)a->H;
}

static float element(const float *full, const uint16_t *half, size_t at) {
    /* One of both is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    return half ? tg_f32_of_bf16(half[at]) : full[at];
}

/* Also the derivative with respect to q.k. */
static double score(const query *a, int j, double *slope) {
    double s = 0;
    for (int d = 0; d < a->D; d++)
        s += (double)a->q[d] * (double)element(a->k, a->half_k, (size_t)j * a->step + (size_t)d);
    s *= a->scale;
    *slope = a->scale;
    if (a->softcap > 0) {
        double t = tanh(s / a->softcap);
        s = a->softcap * t;
        *slope *= 1 - t * t;
    }
    if (a->bias) s += (double)a->bias[bias_at(a, j)];
    return s + a->slope * (j - a->distance);
}

/* Softmax-weighted sum of the value rows; returns log sum exp of the scores. */
static double attend(float *out, const query *a) {
    double top = -(double)INFINITY, sum = 0, unused;
    for (int j = a->first; j < a->end; j++) top = fmax(top, score(a, j, &unused));
    for (int j = a->first; j < a->end; j++) sum += exp(score(a, j, &unused) - top);
    for (int d = 0; d < a->D; d++) {
        double acc = 0;
        for (int j = a->first; j < a->end; j++)
            acc += exp(score(a, j, &unused) - top) / sum *
                   (double)element(a->v, a->half_v, (size_t)j * a->step + (size_t)d);
        out[d] = (float)acc;
    }
    return top + log(sum);
}

static size_t q_at(const tg_attn_dims *d, int h) {
    return (size_t)h * (size_t)(d->q_step ? d->q_step : d->D);
}

static size_t kv_at(const tg_attn_dims *d, int h) {
    return (size_t)(h / (d->H / d->G)) * (size_t)(d->kv_step ? d->kv_step : d->D);
}

/* The keys that query row i of sequence s sees; *kv is where the first of them lies, for head h. */
static query packed_query(const tg_attn_dims *d, const int32_t *offsets, int s, int i, int h,
                          int stride, size_t *kv) {
    int begin = d->k_begin ? d->k_begin[s] : offsets[s];
    int end = d->k_end ? d->k_end[s] : d->causal ? i + 1 : offsets[s + 1];
    query a = query_of(d, h, end - begin, i - offsets[s]);
    a.step = (size_t)(d->kv_stride ? d->kv_stride : stride);
    *kv = (size_t)begin * a.step + kv_at(d, h);
    return a;
}

void tg_ref_attention_forward(tg_backend *be, float *out, float *lse, const float *q,
                              const float *k, const float *v, int stride, const int32_t *offsets,
                              int n_seqs, tg_attn_dims dims) {
    (void)be;
    const int H = dims.H, D = dims.D;
    for (int s = 0; s < n_seqs; s++) {
        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            for (int h = 0; h < H; h++) {
                size_t kv;
                query a = packed_query(&dims, offsets, s, i, h, stride, &kv);
                a.q = q + (size_t)i * (size_t)stride + q_at(&dims, h);
                a.k = k + kv, a.v = v + kv;
                lse[(size_t)i * H + h] = (float)attend(out + ((size_t)i * H + h) * D, &a);
            }
        }
    }
}

/* For one query and head: p_j = exp(s_j - lse), dp_j = dout . v_j, ds_j = p_j (dp_j - dout . out). */
static void attend_backward(float *dq, float *dk, float *dv, float *dbias, const float *dout,
                            const float *out, double lse, const query *a) {
    double delta = dot(dout, out, a->D);
    for (int j = a->first; j < a->end; j++) {
        size_t row = (size_t)j * a->step;
        double slope, p = exp(score(a, j, &slope) - lse);
        double ds = p * (dot(dout, a->v + row, a->D) - delta);
        if (a->bias && dbias) dbias[bias_at(a, j)] += (float)ds;
        ds *= slope;
        for (int d = 0; d < a->D; d++) {
            dv[row + (size_t)d] += (float)(p * (double)dout[d]);
            dq[d] += (float)(ds * (double)a->k[row + (size_t)d]);
            dk[row + (size_t)d] += (float)(ds * (double)a->q[d]);
        }
    }
}

void tg_ref_attention_backward(tg_backend *be, float *dq, float *dk, float *dv, const float *dout,
                               const float *out, const float *lse, const float *q, const float *k,
                               const float *v, int stride, const int32_t *offsets, int n_seqs,
                               tg_attn_dims dims) {
    (void)be;
    const int H = dims.H, D = dims.D;
    for (int s = 0; s < n_seqs; s++) {
        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            for (int h = 0; h < H; h++) {
                size_t kv;
                size_t row = (size_t)i * (size_t)stride + q_at(&dims, h), head = (size_t)i * H + h;
                query a = packed_query(&dims, offsets, s, i, h, stride, &kv);
                a.q = q + row, a.k = k + kv, a.v = v + kv;
                attend_backward(dq + row, dk + kv, dv + kv, dims.dbias ? dims.dbias + h : NULL,
                                dout + head * D, out + head * D, (double)lse[head], &a);
            }
        }
    }
}

void tg_ref_attention_decode(tg_backend *be, float *out, const float *q, int q_stride,
                             const void *k_cache, const void *v_cache, int max_len,
                             const int32_t *slots, const int32_t *lengths, int B,
                             tg_attn_dims dims) {
    (void)be;
    const size_t step = (size_t)dims.G * (size_t)dims.D;
    dims.kv_step = 0;
    for (int b = 0; b < B; b++) {
        for (int h = 0; h < dims.H; h++) {
            size_t kv = (size_t)slots[b] * (size_t)max_len * step + kv_at(&dims, h);
            query a = query_of(&dims, h, lengths[b], lengths[b] - 1);
            a.q = q + (size_t)b * (size_t)q_stride + q_at(&dims, h);
            if (dims.half_cache)
                a.half_k = (const uint16_t *)k_cache + kv,
                a.half_v = (const uint16_t *)v_cache + kv;
            else
                a.k = (const float *)k_cache + kv, a.v = (const float *)v_cache + kv;
            a.step = step;
            attend(out + ((size_t)b * dims.H + h) * dims.D, &a);
        }
    }
}

/* One query and head: the derivative of attend() along tq, tk, tv and the scores' biases. */
static void attend_tangent(float *tout, const query *a, const query *t, const float *out,
                           double lse) {
    double mean = 0;
    for (int j = a->first; j < a->end; j++) {
        size_t at = (size_t)j * a->step;
        double slope, p = exp(score(a, j, &slope) - lse);
        double ts = slope * (dot(t->q, a->k + at, a->D) + dot(a->q, t->k + at, a->D));
        if (t->bias) ts += (double)t->bias[bias_at(a, j)];
        mean += p * ts;
    }
    for (int d = 0; d < a->D; d++) {
        double acc = -mean * (double)out[d];
        for (int j = a->first; j < a->end; j++) {
            size_t at = (size_t)j * a->step;
            double slope, p = exp(score(a, j, &slope) - lse);
            double ts = slope * (dot(t->q, a->k + at, a->D) + dot(a->q, t->k + at, a->D));
            if (t->bias) ts += (double)t->bias[bias_at(a, j)];
            acc += p * ((double)t->v[at + (size_t)d] + ts * (double)a->v[at + (size_t)d]);
        }
        tout[d] = (float)acc;
    }
}

void tg_ref_attention_tangent(tg_backend *be, float *tout, tg_attn_rows value, tg_attn_rows tangent,
                              const float *tbias, const float *out, const float *lse, int stride,
                              const int32_t *offsets, int n_seqs, tg_attn_dims dims) {
    (void)be;
    const int H = dims.H, D = dims.D;
    for (int s = 0; s < n_seqs; s++)
        for (int i = offsets[s]; i < offsets[s + 1]; i++)
            for (int h = 0; h < H; h++) {
                size_t kv, q = (size_t)i * (size_t)stride + q_at(&dims, h);
                size_t row = (size_t)i * (size_t)H + (size_t)h;
                query a = packed_query(&dims, offsets, s, i, h, stride, &kv), t = a;
                a.q = value.q + q, a.k = value.k + kv, a.v = value.v + kv;
                t.q = tangent.q + q, t.k = tangent.k + kv, t.v = tangent.v + kv;
                t.bias = tbias ? tbias + h : NULL;
                attend_tangent(tout + row * (size_t)D, &a, &t, out + row * (size_t)D,
                               (double)lse[row]);
            }
}
