/* The keys and values of the texts in a decoder's slots, f32 or bf16: (layers, slots, len, G*D) each. Rows at and behind a slot's
 * length hold anything.
 *
 * Private to common/nn. */
#ifndef TG_NN_KV_CACHE_H
#define TG_NN_KV_CACHE_H

#include "common/nn/trunk.h"

typedef struct tg_kv_cache {
    char *k, *v;
    int slots, len;
    bool half;
    /* (rows * chunks) where a row's keys and values are in qkv, counted in chunks */
    int32_t *k_rows, *v_rows;
} tg_kv_cache;

/* Chunks: the keys of a row of qkv are one run of G*D floats, or G runs of D with queries and values between them. */
int tg_kv_chunks(const tg_arch *arch);
/* rows: of qkv, at most. */
void tg_carve_kv_cache(tg_carve *c, const tg_arch *arch, tg_kv_cache *kv, int rows);
/* Fills k_rows and v_rows; staging: host, (rows * chunks). */
void tg_kv_cache_begin(const tg_kv_cache *kv, tg_backend *be, const tg_arch *arch, int rows,
                       int32_t *staging);

/* A layer's part, as attention_decode takes it. */
const void *tg_kv_keys(const tg_kv_cache *kv, const tg_arch *arch, int layer);
const void *tg_kv_values(const tg_kv_cache *kv, const tg_arch *arch, int layer);

/* Rows [first, first + n) of qkv become the first n of a slot. space: device, (n, G*D). */
void tg_kv_store_text(const tg_kv_cache *kv, const tg_trunk *t, int layer, int slot,
                      const float *qkv, int first, int n, float *space);
/* The first n rows of qkv become rows at[i] (device), counted over all slots. space: device, (n, G*D). */
void tg_kv_store_rows(const tg_kv_cache *kv, const tg_trunk *t, int layer, const float *qkv,
                      const int32_t *at, int n, float *space);
/* Rows [first, end) of one slot to another, in all layers. */
void tg_kv_copy(const tg_kv_cache *kv, const tg_trunk *t, int from, int to, int first, int end);

#endif
