/* Opening, checking and converting. After open every tensor's data lies inside the map, the tensors
 * cover the data exactly once and have distinct names; nothing later checks again. */
#include "common/nn/safetensors.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/nn/st_header.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100 * 1000 * 1000 }; /* the format's own limit */

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [TG_F32] = {"F32", 4}, [TG_F16] = {"F16", 2}, [TG_BF16] = {"BF16", 2},
    [TG_F64] = {"F64", 8}, [TG_I32] = {"I32", 4}, [TG_I64] = {"I64", 8},
    [TG_U8] = {"U8", 1},   [TG_I8] = {"I8", 1},   [TG_BOOL8] = {"BOOL", 1},
};

const char *tg_dtype_name(tg_dtype dtype) {
    return dtypes[dtype].name;
}

size_t tg_dtype_bytes(tg_dtype dtype) {
    return dtypes[dtype].bytes;
}

static int by_data(const void *a, const void *b) {
    const tg_st_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    const tg_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static tg_status check_cover(tg_safetensors *st, const char *file, const unsigned char *blob,
                             size_t blob_len, tg_error *err) {
    if (st->n) qsort(st->tensors, st->n, sizeof *st->tensors, by_data);
    const unsigned char *next = blob;
    for (size_t i = 0; i < st->n; i++) {
        const tg_st_tensor *t = &st->tensors[i];
        if (t->data != next)
            return tg_fail(err, TG_DATA, "%s: bad safetensors file: tensor \"%.200s\": its data %s",
                           file, t->name,
                           t->data < next ? "overlaps that of another tensor"
                                          : "leaves a gap before it");
        next = t->data + t->bytes;
    }
    size_t covered = (size_t)(next - blob);
    if (covered != blob_len)
        return tg_fail(err, TG_DATA,
                       "%s: bad safetensors file: %zu bytes of data, of which tensors cover %zu",
                       file, blob_len, covered);
    return TG_OK;
}

static tg_status check_names(const tg_safetensors *st, const char *file, tg_error *err) {
    if (st->n < 2) return TG_OK;
    const tg_st_tensor **sorted = tg_alloc_array(st->n, sizeof(void *));
    if (!sorted) return tg_fail_nomem(err, st->n * sizeof(void *));
    for (size_t i = 0; i < st->n; i++) sorted[i] = &st->tensors[i];
    qsort(sorted, st->n, sizeof *sorted, by_name);
    tg_status status = TG_OK;
    for (size_t i = 1; i < st->n && status == TG_OK; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name)) continue;
        status = tg_fail(err, TG_DATA, "%s: bad safetensors file: tensor \"%.200s\" occurs twice",
                         file, sorted[i]->name);
    }
    tg_free(sorted);
    return status;
}

tg_status tg_safetensors_open_memory(tg_safetensors *st, const char *name, const void *bytes,
                                     size_t len, tg_error *err) {
    *st = (tg_safetensors){0};
    const unsigned char *p = bytes;
    if (len < 8)
        return tg_fail(err, TG_DATA, "%s: bad safetensors file: %zu bytes are too few", name, len);
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) header = header << 8 | p[i];
    if (header > MAX_HEADER || header > len - 8)
        return tg_fail(err, TG_DATA,
                       "%s: bad safetensors file: a header of %llu bytes in a file of %zu (not "
                       "safetensors, or cut off)",
                       name, (unsigned long long)header, len);
    const unsigned char *blob = p + 8 + header;
    size_t blob_len = len - 8 - (size_t)header;
    tg_status status =
        tg_st_header_parse(st, name, (const char *)p + 8, (size_t)header, blob, blob_len, err);
    if (status == TG_OK) status = check_cover(st, name, blob, blob_len, err);
    if (status == TG_OK) status = check_names(st, name, err);
    if (status != TG_OK) tg_safetensors_close(st);
    return status;
}

tg_status tg_safetensors_open(tg_safetensors *st, const char *path, tg_error *err) {
    *st = (tg_safetensors){0};
    tg_filemap map;
    tg_status status = tg_filemap_open(&map, path, err);
    if (status != TG_OK) return status;
    status = tg_safetensors_open_memory(st, path, map.data, map.len, err);
    if (status == TG_OK)
        st->map = map;
    else
        tg_filemap_close(&map);
    return status;
}

void tg_safetensors_close(tg_safetensors *st) {
    for (size_t i = 0; i < st->n; i++) tg_free(st->tensors[i].name);
    tg_free(st->tensors);
    tg_filemap_close(&st->map);
    *st = (tg_safetensors){0};
}

const tg_st_tensor *tg_safetensors_find(const tg_safetensors *st, const char *name) {
    for (size_t i = 0; i < st->n; i++)
        if (!strcmp(st->tensors[i].name, name)) return &st->tensors[i];
    return NULL;
}

static float bits_to_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* IEEE 754 binary16, subnormals, infinities and NaN included. */
static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 31) return bits_to_float(sign | 0x7F800000 | mantissa << 13);
    if (exponent) return bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float f = (float)mantissa * 0x1p-24f;
    return sign ? -f : f;
}

tg_status tg_st_to_f32_part(const tg_st_tensor *t, size_t begin, size_t count, float *out,
                            tg_error *err) {
    TG_ASSERT(begin <= t->count && count <= t->count - begin);
    const unsigned char *from = t->data + begin * tg_dtype_bytes(t->dtype);
    switch (t->dtype) {
    case TG_F32:
        if (count) memcpy(out, from, count * sizeof(float));
        return TG_OK;
    case TG_F64:
        for (size_t i = 0; i < count; i++) {
            double d;
            memcpy(&d, from + 8 * i, sizeof d);
            out[i] = (float)d;
        }
        return TG_OK;
    case TG_F16:
    case TG_BF16:
        for (size_t i = 0; i < count; i++) {
            uint16_t h;
            memcpy(&h, from + 2 * i, sizeof h);
            out[i] = t->dtype == TG_F16 ? half_to_float(h) : bits_to_float((uint32_t)h << 16);
        }
        return TG_OK;
    default:
        return tg_fail(err, TG_DATA,
                       "tensor \"%.200s\" is of type %s; a floating-point type was expected",
                       t->name, tg_dtype_name(t->dtype));
    }
}

tg_status tg_st_to_f32(const tg_st_tensor *t, float *out, tg_error *err) {
    return tg_st_to_f32_part(t, 0, t->count, out, err);
}
