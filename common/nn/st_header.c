/* A parser for exactly the JSON that a safetensors header may be:
 *
 *     {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n, ..], "data_offsets": [begin, end]}, ..}
 *
 * Hand-written so that a hostile header costs no more memory than its own size suggests: anything
 * that is not of this form is refused where it stands, with the byte position. */
#include "common/nn/st_header.h"

#include "common/base/alloc.h"
#include "common/config/json.h"
#include "common/nn/st_cursor.h"

#include <string.h>

struct entry { /* one tensor while its object is read */
    bool has_dtype, has_shape, has_offsets;
    tg_dtype dtype;
    int ndim;
    int64_t shape[TG_ST_MAX_DIMS];
    int64_t offsets[2];
};

static tg_status read_dtype(tg_st_cursor *c, tg_dtype *out) {
    tg_status st = tg_st_read_string(c);
    if (st != TG_OK) return st;
    for (int d = TG_F32; d <= TG_BOOL8; d++) {
        if (!tg_st_key_is(c, tg_dtype_name((tg_dtype)d))) continue;
        *out = (tg_dtype)d;
        return TG_OK;
    }
    return tg_fail(c->err, TG_DATA,
                   "dtype %.32s is not one of F32, F16, BF16, F64, I32, I64, I16, U8, I8, BOOL",
                   c->key.data);
}

static tg_status read_field(tg_st_cursor *c, struct entry *e) {
    tg_status st = tg_st_read_string(c);
    if (st != TG_OK) return st;
    bool *seen = NULL;
    if (tg_st_key_is(c, "dtype"))
        seen = &e->has_dtype;
    else if (tg_st_key_is(c, "shape"))
        seen = &e->has_shape;
    else if (tg_st_key_is(c, "data_offsets"))
        seen = &e->has_offsets;
    if (!seen) return tg_st_bad(c, "only dtype, shape and data_offsets are allowed in a tensor");
    if (*seen) return tg_st_bad(c, "the same key twice");
    *seen = true;
    if (!tg_st_accept(c, ':')) return tg_st_bad(c, "expected :");
    if (seen == &e->has_dtype) return read_dtype(c, &e->dtype);
    if (seen == &e->has_shape) return tg_st_read_numbers(c, e->shape, TG_ST_MAX_DIMS, &e->ndim);
    int n;
    st = tg_st_read_numbers(c, e->offsets, 2, &n);
    if (st == TG_OK && n != 2) return tg_st_bad(c, "data_offsets needs two numbers");
    return st;
}

static tg_status read_entry(tg_st_cursor *c, struct entry *e) {
    if (!tg_st_accept(c, '{')) return tg_st_bad(c, "expected an object");
    do {
        tg_status st = read_field(c, e);
        if (st != TG_OK) return st;
    } while (tg_st_accept(c, ','));
    if (!tg_st_accept(c, '}')) return tg_st_bad(c, "expected , or }");
    if (!e->has_dtype || !e->has_shape || !e->has_offsets)
        return tg_st_bad(c, "a tensor needs dtype, shape and data_offsets");
    return TG_OK;
}

/* Texts by name; the safetensors package takes null for none. */
static tg_status read_metadata(tg_st_cursor *c) {
    tg_st_skip_space(c);
    if (c->end - c->at >= 4 && !memcmp(c->at, "null", 4)) {
        c->at += 4;
        return TG_OK;
    }
    if (!tg_st_accept(c, '{')) return tg_st_bad(c, "__metadata__: expected an object");
    if (tg_st_accept(c, '}')) return TG_OK;
    do {
        tg_status st = tg_st_read_string(c);
        if (st == TG_OK && !tg_st_accept(c, ':')) st = tg_st_bad(c, "expected :");
        if (st == TG_OK) st = tg_st_read_string(c);
        if (st != TG_OK) return st;
    } while (tg_st_accept(c, ','));
    return tg_st_accept(c, '}') ? TG_OK : tg_st_bad(c, "expected , or }");
}

/* Shape times element size is the length of the data, and the data lies in the file. */
static tg_status check_extent(const struct entry *e, size_t blob_len, size_t *count,
                              tg_error *err) {
    size_t n = 1;
    for (int i = 0; i < e->ndim; i++) {
        if (__builtin_mul_overflow(n, (size_t)e->shape[i], &n))
            return tg_fail(err, TG_DATA, "the shape is too large");
    }
    size_t bytes;
    if (__builtin_mul_overflow(n, tg_dtype_bytes(e->dtype), &bytes))
        return tg_fail(err, TG_DATA, "the shape is too large");
    size_t begin = (size_t)e->offsets[0], end = (size_t)e->offsets[1];
    if (begin > end || end > blob_len)
        return tg_fail(err, TG_DATA, "data_offsets [%zu, %zu] are not within the %zu bytes of data",
                       begin, end, blob_len);
    if (end - begin != bytes)
        return tg_fail(err, TG_DATA, "shape and dtype need %zu bytes, data_offsets hold %zu", bytes,
                       end - begin);
    *count = n;
    return TG_OK;
}

static bool grow(tg_safetensors *st, size_t *cap) {
    if (st->n < *cap) return true;
    size_t wanted = *cap ? *cap + *cap / 2 : 32;
    tg_st_tensor *t = tg_realloc_array(st->tensors, wanted, sizeof *t);
    if (!t) return false;
    st->tensors = t;
    *cap = wanted;
    return true;
}

static tg_status read_tensor(tg_st_cursor *c, tg_safetensors *st, size_t *cap,
                             const unsigned char *blob, size_t blob_len) {
    if (strlen(c->key.data) != c->key.len) return tg_st_bad(c, "a name with a NUL character");
    if (c->key.len > TG_ST_MAX_NAME) return tg_st_bad(c, "too long a name of a tensor");
    if (st->n == TG_ST_MAX_TENSORS) return tg_st_bad(c, "too many tensors");
    if (!grow(st, cap)) return tg_fail_nomem(c->err, *cap * sizeof *st->tensors);
    char *name = tg_strdup(c->key.data);
    if (!name) return tg_fail_nomem(c->err, c->key.len + 1);
    tg_st_tensor *t = &st->tensors[st->n++];
    *t = (tg_st_tensor){.name = name};
    struct entry e = {0};
    tg_status status = read_entry(c, &e);
    if (status == TG_OK) status = check_extent(&e, blob_len, &t->count, c->err);
    if (status == TG_DATA) return tg_error_prefix(c->err, "tensor \"%.200s\": ", t->name);
    if (status != TG_OK) return status;
    t->dtype = e.dtype;
    t->ndim = e.ndim;
    memcpy(t->shape, e.shape, sizeof t->shape);
    t->bytes = (size_t)(e.offsets[1] - e.offsets[0]);
    t->data = blob ? blob + e.offsets[0] : NULL;
    return TG_OK;
}

static tg_status read_header(tg_st_cursor *c, tg_safetensors *st, const unsigned char *blob,
                             size_t blob_len) {
    size_t cap = 0;
    bool metadata = false;
    if (c->at == c->end || *c->at != '{') return tg_st_bad(c, "expected {");
    c->at++;
    if (tg_st_accept(c, '}')) return TG_OK;
    do {
        tg_status status = tg_st_read_string(c);
        if (status != TG_OK) return status;
        if (!tg_st_accept(c, ':')) return tg_st_bad(c, "expected :");
        if (!tg_st_key_is(c, "__metadata__")) {
            status = read_tensor(c, st, &cap, blob, blob_len);
        } else {
            if (metadata) return tg_st_bad(c, "__metadata__ twice");
            metadata = true;
            status = read_metadata(c);
        }
        if (status != TG_OK) return status;
    } while (tg_st_accept(c, ','));
    return tg_st_accept(c, '}') ? TG_OK : tg_st_bad(c, "expected , or }");
}

tg_status tg_st_header_parse(tg_safetensors *st, const char *file, const char *text, size_t len,
                             const unsigned char *blob, size_t blob_len, tg_error *err) {
    tg_error local = {0}; /* tg_error_prefix needs one */
    tg_st_cursor c = {.text = text, .at = text, .end = text + len, .err = err ? err : &local};
    const size_t valid = tg_json_utf8(text, len);
    c.at = text + valid;
    tg_status status =
        valid < len ? tg_st_bad(&c, "expected UTF-8 (of names and __metadata__ too)") : TG_OK;
    c.at = text;
    if (status == TG_OK) status = read_header(&c, st, blob, blob_len);
    if (status == TG_OK) {
        tg_st_skip_space(&c);
        if (c.at != c.end) status = tg_st_bad(&c, "more text behind the header object");
    }
    tg_buf_fini(&c.key);
    if (status == TG_DATA) tg_error_prefix(c.err, "%s: bad safetensors file: ", file);
    return status;
}
