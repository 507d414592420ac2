/* Attention, naive: a score is computed again wherever it is needed, so that no buffer exists. */
#include "common/nn/ref/ref.h"

#include <math.h>

static double dot(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Softmax-weighted sum of n value rows for one query; returns log sum exp of the scores. Rows are
 * `step` floats apart. */
static double attend(float *out, const float *q, const float *k, const float *v, int n, size_t step,
                     int D, float scale) {
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < n; j++) top = fmax(top, (double)scale * dot(q, k + (size_t)j * step, D));
    for (int j = 0; j < n; j++) sum += exp((double)scale * dot(q, k + (size_t)j * step, D) - top);
    for (int d = 0; d < D; d++) {
        double acc = 0;
        for (int j = 0; j < n; j++) {
            double p = exp((double)scale * dot(q, k + (size_t)j * step, D) - top) / sum;
            acc += p * (double)v[(size_t)j * step + (size_t)d];
        }
        out[d] = (float)acc;
    }
    return top + log(sum);
}

void tg_ref_attention_forward(tg_backend *be, float *out, float *lse, const float *q,
                              const float *k, const float *v, int stride, const int32_t *offsets,
                              int n_seqs, tg_attn_dims dims) {
    (void)be;
    const int H = dims.H, D = dims.D;
    const size_t step = (size_t)stride;
    for (int s = 0; s < n_seqs; s++) {
        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            for (int h = 0; h < H; h++) {
                size_t g = (size_t)(h / (H / dims.G)) * (size_t)D,
                       first = (size_t)offsets[s] * step;
                int n = (dims.causal ? i + 1 : offsets[s + 1]) - offsets[s];
                double l =
                    attend(out + ((size_t)i * H + h) * D, q + (size_t)i * step + (size_t)h * D,
                           k + first + g, v + first + g, n, step, D, dims.scale);
                lse[(size_t)i * H + h] = (float)l;
            }
        }
    }
}

/* For one query and head: p_j = exp(s_j - lse), dp_j = dout . v_j, ds_j = p_j (dp_j - dout . out).
 */
static void attend_backward(float *dq, float *dk, float *dv, const float *dout, const float *out,
                            double lse, const float *q, const float *k, const float *v, int n,
                            size_t step, int D, float scale) {
    double delta = dot(dout, out, D);
    for (int j = 0; j < n; j++) {
        size_t row = (size_t)j * step;
        double p = exp((double)scale * dot(q, k + row, D) - lse);
        double ds = p * (dot(dout, v + row, D) - delta) * (double)scale;
        for (int d = 0; d < D; d++) {
            dv[row + (size_t)d] += (float)(p * (double)dout[d]);
            dq[d] += (float)(ds * (double)k[row + (size_t)d]);
            dk[row + (size_t)d] += (float)(ds * (double)q[d]);
        }
    }
}

void tg_ref_attention_backward(tg_backend *be, float *dq, float *dk, float *dv, const float *dout,
                               const float *out, const float *lse, const float *q, const float *k,
                               const float *v, int stride, const int32_t *offsets, int n_seqs,
                               tg_attn_dims dims) {
    (void)be;
    const int H = dims.H, D = dims.D;
    const size_t step = (size_t)stride;
    for (int s = 0; s < n_seqs; s++) {
        for (int i = offsets[s]; i < offsets[s + 1]; i++) {
            for (int h = 0; h < H; h++) {
                size_t kv = (size_t)offsets[s] * step + (size_t)(h / (H / dims.G)) * (size_t)D;
                size_t row = (size_t)i * step + (size_t)h * D, head = (size_t)i * H + h;
                int n = (dims.causal ? i + 1 : offsets[s + 1]) - offsets[s];
                attend_backward(dq + row, dk + kv, dv + kv, dout + head * D, out + head * D,
                                (double)lse[head], q + row, k + kv, v + kv, n, step, D, dims.scale);
            }
        }
    }
}

void tg_ref_attention_decode(tg_backend *be, float *out, const float *q, int q_stride,
                             const float *k_cache, const float *v_cache, int max_len,
                             const int32_t *slots, const int32_t *lengths, int B,
                             tg_attn_dims dims) {
    (void)be;
    const size_t step = (size_t)dims.G * (size_t)dims.D;
    for (int b = 0; b < B; b++) {
        for (int h = 0; h < dims.H; h++) {
            size_t kv = (size_t)slots[b] * (size_t)max_len * step +
                        (size_t)(h / (dims.H / dims.G)) * (size_t)dims.D;
            attend(out + ((size_t)b * dims.H + h) * dims.D,
                   q + (size_t)b * (size_t)q_stride + (size_t)h * dims.D, k_cache + kv,
                   v_cache + kv, lengths[b], step, dims.D, dims.scale);
        }
    }
}
