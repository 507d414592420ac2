/* See kv_cache.h. Keys go where the values go: one offset serves both. */
#include "common/nn/kv_cache.h"

int tg_kv_chunks(const tg_arch *a) {
    return a->qkv_by_head ? a->n_kv_heads : 1;
}

static int chunk_width(const tg_arch *a) {
    return tg_trunk_kv_width(a) / tg_kv_chunks(a);
}

static size_t row_bytes(const tg_kv_cache *kv, const tg_arch *a) {
    return (size_t)tg_trunk_kv_width(a) * (kv->half ? sizeof(uint16_t) : sizeof(float));
}

/* Bytes before a row of a slot. */
static size_t offset(const tg_kv_cache *kv, const tg_arch *a, int layer, int slot, int row) {
    const size_t slots = (size_t)layer * (size_t)kv->slots + (size_t)slot;
    return (slots * (size_t)kv->len + (size_t)row) * row_bytes(kv, a);
}

void tg_carve_kv_cache(tg_carve *c, const tg_arch *a, tg_kv_cache *kv, int rows) {
    const size_t bytes = offset(kv, a, a->n_layers, 0, 0);
    kv->k = tg_carve_bytes(c, bytes);
    kv->v = tg_carve_bytes(c, bytes);
    kv->k_rows = tg_carve_i32(c, (size_t)rows * (size_t)tg_kv_chunks(a));
    kv->v_rows = tg_carve_i32(c, (size_t)rows * (size_t)tg_kv_chunks(a));
}

/* Offsets of heads and rows are multiples of a chunk: it divides D, or is G*D, which divides H*D. */
static void upload_rows(tg_backend *be, const tg_arch *a, int32_t *device, int first, int rows,
                        int32_t *staging) {
    const tg_heads at = tg_trunk_heads(a);
    const int chunks = tg_kv_chunks(a), width = chunk_width(a), n = rows * chunks;
    for (int i = 0; i < n; i++)
        staging[i] = i / chunks * (at.stride / width) + (first + i % chunks * at.step) / width;
    tg_backend_upload(be, device, staging, (size_t)n * sizeof *staging);
}

void tg_kv_cache_begin(const tg_kv_cache *kv, tg_backend *be, const tg_arch *a, int rows,
                       int32_t *staging) {
    upload_rows(be, a, kv->k_rows, tg_trunk_heads(a).k, rows, staging);
    upload_rows(be, a, kv->v_rows, tg_trunk_heads(a).v, rows, staging);
}

const void *tg_kv_keys(const tg_kv_cache *kv, const tg_arch *a, int layer) {
    return kv->k + offset(kv, a, layer, 0, 0);
}

const void *tg_kv_values(const tg_kv_cache *kv, const tg_arch *a, int layer) {
    return kv->v + offset(kv, a, layer, 0, 0);
}

/* n rows of qkv, chunks from[...], to rows at[i] of the cache, or one after the other. */
static void store(const tg_kv_cache *kv, const tg_trunk *t, char *cache, const float *qkv,
                  const int32_t *from, const int32_t *at, int n, float *space) {
    const tg_ops *ops = t->be->ops;
    const int chunks = tg_kv_chunks(&t->arch);
    float *whole = kv->half || at ? space : (float *)(void *)cache;
    ops->gather_rows(t->be, whole, qkv, from, n * chunks, chunk_width(&t->arch));
    if (kv->half || at)
        ops->put_rows(t->be, cache, kv->half, space, at, n, tg_trunk_kv_width(&t->arch));
}

void tg_kv_store_text(const tg_kv_cache *kv, const tg_trunk *t, int layer, int slot,
                      const float *qkv, int first, int n, float *space) {
    const size_t at = offset(kv, &t->arch, layer, slot, 0);
    const int chunk = first * tg_kv_chunks(&t->arch);
    store(kv, t, kv->k + at, qkv, kv->k_rows + chunk, NULL, n, space);
    store(kv, t, kv->v + at, qkv, kv->v_rows + chunk, NULL, n, space);
}

void tg_kv_store_rows(const tg_kv_cache *kv, const tg_trunk *t, int layer, const float *qkv,
                      const int32_t *at, int n, float *space) {
    const size_t begin = offset(kv, &t->arch, layer, 0, 0);
    store(kv, t, kv->k + begin, qkv, kv->k_rows, at, n, space);
    store(kv, t, kv->v + begin, qkv, kv->v_rows, at, n, space);
}

void tg_kv_copy(const tg_kv_cache *kv, const tg_trunk *t, int from, int to, int first, int end) {
    const tg_arch *a = &t->arch;
    const size_t floats = (size_t)(end - first) * row_bytes(kv, a) / sizeof(float);
    if (from == to || end <= first) return;
    for (int l = 0; l < a->n_layers; l++) {
        const size_t source = offset(kv, a, l, from, first), target = offset(kv, a, l, to, first);
        t->be->ops->copy(t->be, (float *)(void *)(kv->k + target),
                         (const float *)(const void *)(kv->k + source), floats);
        t->be->ops->copy(t->be, (float *)(void *)(kv->v + target),
                         (const float *)(const void *)(kv->v + source), floats);
    }
}
