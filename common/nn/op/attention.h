/* Scaled dot-product attention on packed sequences.
 *
 * Rows of q, k, v lie `stride` floats apart (a fused qkv buffer has stride 3C). Head h of row i starts at q[i*stride + h*q_step],
 * key/value head g at k[i*stride + g*kv_step]; a step of 0 means D. Query head h uses key/value head h / (H/G).
 *
 * Keys and values of sequence s lie at its queries' rows, or with k_begin and k_end at rows k_begin[s] .. k_end[s]-1 of k and v, which
 * are then kv_stride apart (0: stride): attention to another text, not causal and without window, slopes or bias.
 *
 * The score of query i and key j is s = scale q.k; with softcap > 0 then softcap tanh(s / softcap); with slopes (H, on the device)
 * then + slopes[h] (j - i), ALiBi (Press et al. 2021); with bias (2 reach + 1, H) then + bias[clamp(i - j, -reach, reach) + reach][h], T5's
 * relative positions (Raffel et al. 2020). With window > 0 a query sees the keys with i - j < window; causal only.
 *
 * forward:  for each sequence s, rows offsets[s] .. offsets[s+1]-1:  out (N, H*D) = softmax(scores [, causal]) v.
 *           lse (N,H) = log sum exp of each row's scores, for backward. No buffer beyond a tile: nothing is T x T.
 * backward: dq, dk, dv += ... (same strides as q, k, v), from dout, out (N, H*D), lse. dbias, as bias, += the sums of the
 *           scores' gradients at each distance, in a fixed order; NULL: frozen.
 * decode:   one query row per entry of a batch of B slots, against a cache. k_cache, v_cache: slot-major, each slot
 *           (max_len, G*D), f32 or with half_cache bf16. Entry b uses slot slots[b] and its first lengths[b] rows (the newest key and value are
 *           already stored; the query is at lengths[b] - 1). q, out (B, H*D) with q rows q_stride apart and q_step; the cache is dense.
 * scale > 0; cpu: D <= 512. */
#ifndef TG_NN_OP_ATTENTION_H
#define TG_NN_OP_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

struct tg_backend;

typedef struct tg_attn_dims {
    int H, G, D;
    float scale;
    bool causal;
    int q_step, kv_step;
    int window;
    float softcap;
    const float *slopes;
    const float *bias; /* NULL: none */
    float *dbias;      /* backward */
    int reach;
    const int32_t *k_begin, *k_end; /* (n_seqs); NULL: as the queries */
    int kv_stride;
    bool half_cache; /* decode: the cache is bf16 */
} tg_attn_dims;

typedef void tg_op_attention_forward(struct tg_backend *be, float *out, float *lse, const float *q,
                                     const float *k, const float *v, int stride,
                                     const int32_t *offsets, int n_seqs, tg_attn_dims dims);
typedef void tg_op_attention_backward(struct tg_backend *be, float *dq, float *dk, float *dv,
                                      const float *dout, const float *out, const float *lse,
                                      const float *q, const float *k, const float *v, int stride,
                                      const int32_t *offsets, int n_seqs, tg_attn_dims dims);
typedef void tg_op_attention_decode(struct tg_backend *be, float *out, const float *q, int q_stride,
                                    const void *k_cache, const void *v_cache, int max_len,
                                    const int32_t *slots, const int32_t *lengths, int B,
                                    tg_attn_dims dims);

#endif
