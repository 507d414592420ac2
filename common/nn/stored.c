/* Tables of stored tensors: kinds of files, lookup, and reading elements as another type. */
#include "common/nn/stored.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/crc32.h"
#include "common/base/str.h"
#include "common/nn/safetensors.h"
#include "common/nn/torch/torch_file.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [TG_F32] = {"F32", 4}, [TG_F16] = {"F16", 2},    [TG_BF16] = {"BF16", 2}, [TG_F64] = {"F64", 8},
    [TG_I32] = {"I32", 4}, [TG_I64] = {"I64", 8},    [TG_I16] = {"I16", 2},   [TG_U8] = {"U8", 1},
    [TG_I8] = {"I8", 1},   [TG_BOOL8] = {"BOOL", 1},
};

const char *tg_dtype_name(tg_dtype dtype) {
    return dtypes[dtype].name;
}

size_t tg_dtype_bytes(tg_dtype dtype) {
    return dtypes[dtype].bytes;
}

bool tg_dtype_is_float(tg_dtype dtype) {
    return dtype <= TG_F64;
}

/* What a clone without Git LFS has for large files. */
static bool is_pointer(const unsigned char *data, size_t len) {
    static const char begin[] = "version https://git-lfs";
    return len >= sizeof begin - 1 && !memcmp(data, begin, sizeof begin - 1);
}

tg_status tg_tensor_file_open(tg_tensor_file *f, const char *path, tg_error *err) {
    *f = (tg_tensor_file){0};
    tg_filemap map;
    tg_status st = tg_filemap_open(&map, path, err);
    if (st != TG_OK) return st;
    if (is_pointer(map.data, map.len))
        st = tg_fail(err, TG_DATA,
                     "%s: is a pointer of Git LFS in place of the weights (run: git lfs pull)",
                     path);
    else if (tg_torch_file_is(map.data, map.len) || tg_str_ends(path, ".bin"))
        st = tg_torch_file_open_memory(f, path, map.data, map.len, err);
    else
        st = tg_safetensors_open_memory(f, path, map.data, map.len, err);
    if (st == TG_OK)
        f->map = map;
    else
        tg_filemap_close(&map);
    return st;
}

void tg_tensor_file_close(tg_tensor_file *f) {
    for (size_t i = 0; i < f->n; i++) tg_free(f->tensors[i].name);
    tg_free(f->tensors);
    tg_free(f->seals);
    tg_filemap_close(&f->map);
    *f = (tg_tensor_file){0};
}

const tg_st_tensor *tg_tensor_file_find(const tg_tensor_file *f, const char *name) {
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->tensors[i].name, name)) return &f->tensors[i];
    return NULL;
}

tg_status tg_tensor_file_check_seal(const tg_tensor_file *f, const tg_st_tensor *t,
                                    const char *file, tg_error *err) {
    tg_st_seal *seal = t->seal ? &f->seals[t->seal - 1] : NULL;
    if (!seal || seal->found_right) return TG_OK;
    seal->found_right = tg_crc32(0, seal->data, seal->bytes) == seal->crc;
    if (seal->found_right) return TG_OK;
    return tg_fail(
        err, TG_DATA,
        "%s: tensor \"%.200s\": its bytes are not those that were saved (the checksum in "
        "the file is another): the file is damaged, take another copy",
        file, t->name);
}

static int by_name(const void *a, const void *b) {
    const tg_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

tg_status tg_tensor_file_check_names(const tg_tensor_file *f, const char *file, const char *format,
                                     tg_error *err) {
    if (f->n < 2) return TG_OK;
    const tg_st_tensor **sorted = tg_alloc_array(f->n, sizeof(void *));
    if (!sorted) return tg_fail_nomem(err, f->n * sizeof(void *));
    for (size_t i = 0; i < f->n; i++) sorted[i] = &f->tensors[i];
    qsort(sorted, f->n, sizeof *sorted, by_name);
    tg_status st = TG_OK;
    for (size_t i = 1; i < f->n && st == TG_OK; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) != 0) continue;
        st = tg_fail(err, TG_DATA, "%s: bad %s file: tensor \"%.200s\" occurs twice", file, format,
                     sorted[i]->name);
    }
    tg_free(sorted);
    return st;
}

/* Copies count elements in their order to where they stand one after the other. */
static void gather(const tg_st_tensor *t, size_t begin, size_t count, unsigned char *out) {
    size_t size = tg_dtype_bytes(t->dtype);
    if (!t->strided) {
        if (count) memcpy(out, t->data + begin * size, count * size);
        return;
    }
    int64_t index[TG_ST_MAX_DIMS] = {0};
    size_t rest = begin;
    for (int d = t->ndim - 1; d >= 0; d--) {
        index[d] = (int64_t)(rest % (size_t)t->shape[d]);
        rest /= (size_t)t->shape[d];
    }
    for (size_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int d = 0; d < t->ndim; d++) at += index[d] * t->stride[d];
        memcpy(out + i * size, t->data + (size_t)at * size, size);
        for (int d = t->ndim - 1; d >= 0 && ++index[d] == t->shape[d]; d--) index[d] = 0;
    }
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

/* value / 2^shift, to nearest, ties to even. */
static uint32_t round_shift(uint32_t value, unsigned shift) {
    uint32_t half = 1u << (shift - 1), kept = value >> shift, rest = value & ((1u << shift) - 1);
    return kept + (rest > half || (rest == half && kept & 1));
}

static uint16_t float_to_half(uint32_t bits) {
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t exponent = bits >> 23 & 255, mantissa = bits & 0x7FFFFF;
    if (exponent == 255) return (uint16_t)(sign | 0x7C00 | (mantissa ? 0x200 : 0));
    if (exponent > 142) return (uint16_t)(sign | 0x7C00);
    if (exponent < 102) return sign; /* less than half of the smallest */
    if (exponent < 113) return (uint16_t)(sign | round_shift(mantissa | 0x800000, 126 - exponent));
    /* a carry out of the mantissa goes where it belongs: into the exponent, up to infinity */
    return (uint16_t)(sign | round_shift((exponent - 112) << 23 | mantissa, 13));
}

static uint16_t float_to_bfloat(uint32_t bits) {
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

void tg_f32_to_half(tg_dtype as, const float *from, size_t n, uint16_t *out) {
    TG_ASSERT(as == TG_F16 || as == TG_BF16);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        out[i] = as == TG_F16 ? float_to_half(bits) : float_to_bfloat(bits);
    }
}

/* n elements of a float type that stand one after the other, aligned to nothing. */
static void to_f32(tg_dtype dtype, const unsigned char *from, size_t n, float *out) {
    if (dtype == TG_F32) {
        if (n) memcpy(out, from, n * sizeof(float));
    } else if (dtype == TG_F64) {
        for (size_t i = 0; i < n; i++) {
            double d;
            memcpy(&d, from + 8 * i, sizeof d);
            out[i] = (float)d;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, from + 2 * i, sizeof h);
            out[i] = dtype == TG_F16 ? half_to_float(h) : bits_to_float((uint32_t)h << 16);
        }
    }
}

tg_status tg_st_to_f32_part(const tg_st_tensor *t, size_t begin, size_t count, float *out,
                            tg_error *err) {
    TG_ASSERT(begin <= t->count && count <= t->count - begin);
    if (!tg_dtype_is_float(t->dtype))
        return tg_fail(err, TG_DATA,
                       "tensor \"%.200s\" is of type %s; a floating-point type was expected",
                       t->name, tg_dtype_name(t->dtype));
    size_t size = tg_dtype_bytes(t->dtype);
    if (!t->strided) {
        to_f32(t->dtype, t->data + begin * size, count, out);
        return TG_OK;
    }
    unsigned char piece[4096];
    size_t most = sizeof piece / size;
    for (size_t at = 0; at < count; at += most) {
        size_t n = TG_MIN(count - at, most);
        gather(t, begin + at, n, piece);
        to_f32(t->dtype, piece, n, out + at);
    }
    return TG_OK;
}

tg_status tg_st_to_f32(const tg_st_tensor *t, float *out, tg_error *err) {
    return tg_st_to_f32_part(t, 0, t->count, out, err);
}

tg_status tg_st_read(const tg_st_tensor *t, size_t begin, size_t count, tg_dtype as, void *out,
                     tg_error *err) {
    TG_ASSERT(begin <= t->count && count <= t->count - begin);
    if (as == t->dtype) {
        gather(t, begin, count, out);
        return TG_OK;
    }
    if (as == TG_F32) return tg_st_to_f32_part(t, begin, count, out, err);
    if (as != TG_F16 && as != TG_BF16)
        return tg_fail(err, TG_DATA, "tensor \"%.200s\" of type %s cannot be written as %s",
                       t->name, tg_dtype_name(t->dtype), tg_dtype_name(as));
    float piece[1024];
    for (size_t at = 0; at < count; at += TG_COUNT_OF(piece)) {
        size_t n = TG_MIN(count - at, TG_COUNT_OF(piece));
        tg_status st = tg_st_to_f32_part(t, begin + at, n, piece, err);
        if (st != TG_OK) return st;
        tg_f32_to_half(as, piece, n, (uint16_t *)out + at);
    }
    return TG_OK;
}
