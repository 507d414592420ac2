/* A parser for exactly the JSON that a safetensors header may be:
 *
 *     {"__metadata__": {text: text}, name: {"dtype": text, "shape": [n, ..], "data_offsets":
 * [begin, end]}, ..}
 *
 * Hand-written so that a hostile header costs no more memory than its own size suggests: anything
 * that is not of this form is refused where it stands, with the byte position. */
#include "common/nn/st_header.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/config/json.h"

#include <string.h>

struct cursor {
    const char *text, *at, *end;
    tg_error *err;
    tg_buf key; /* the last string read; of one longer than a name may be, its beginning */
};

struct entry { /* one tensor while its object is read */
    bool has_dtype, has_shape, has_offsets;
    tg_dtype dtype;
    int ndim;
    int64_t shape[TG_ST_MAX_DIMS];
    int64_t offsets[2];
};

static tg_status bad(struct cursor *c, const char *what) {
    return tg_fail(c->err, TG_DATA, "header byte %zu: %s", (size_t)(c->at - c->text), what);
}

static void skip_space(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

static bool accept(struct cursor *c, char wanted) {
    skip_space(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool key_is(const struct cursor *c, const char *name) {
    return c->key.len == strlen(name) && !memcmp(c->key.data, name, c->key.len);
}

static int hex4(const char *p) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char ch = p[i];
        int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                    : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                    : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                             : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Metadata may be long, and is read for its form alone. */
static void keep(struct cursor *c, const char *text, size_t len) {
    if (c->key.len > TG_ST_MAX_NAME) return;
    tg_buf_append(&c->key, text, TG_MIN(len, TG_ST_MAX_NAME + 1 - c->key.len));
}

static void put_utf8(tg_buf *b, unsigned cp) {
    if (cp < 0x80) {
        tg_buf_putc(b, (char)cp);
    } else if (cp < 0x800) {
        tg_buf_putc(b, (char)(0xC0 | cp >> 6));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    } else if (cp < 0x10000) {
        tg_buf_putc(b, (char)(0xE0 | cp >> 12));
        tg_buf_putc(b, (char)(0x80 | (cp >> 6 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    } else {
        tg_buf_putc(b, (char)(0xF0 | cp >> 18));
        tg_buf_putc(b, (char)(0x80 | (cp >> 12 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp >> 6 & 63)));
        tg_buf_putc(b, (char)(0x80 | (cp & 63)));
    }
}

/* \uXXXX, with the second half of a surrogate pair when there is one. c->at is behind the u. */
static tg_status read_unicode_escape(struct cursor *c) {
    if (c->end - c->at < 4) return bad(c, "the text ends inside \\u");
    int high = hex4(c->at);
    if (high < 0) return bad(c, "bad \\u escape");
    c->at += 4;
    unsigned cp = (unsigned)high;
    if (cp >= 0xD800 && cp < 0xDC00) {
        int low = c->end - c->at >= 6 && c->at[0] == '\\' && c->at[1] == 'u' ? hex4(c->at + 2) : -1;
        if (low < 0xDC00 || low > 0xDFFF) return bad(c, "half a surrogate pair");
        c->at += 6;
        cp = 0x10000 + ((cp - 0xD800) << 10) + ((unsigned)low - 0xDC00);
    } else if (cp >= 0xDC00 && cp < 0xE000) {
        return bad(c, "half a surrogate pair");
    }
    if (c->key.len <= TG_ST_MAX_NAME) put_utf8(&c->key, cp);
    return TG_OK;
}

static tg_status read_escape(struct cursor *c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->at == c->end) return bad(c, "the text ends inside a string");
    char ch = *c->at++;
    if (ch == 'u') return read_unicode_escape(c);
    const char *hit = ch ? strchr(from, ch) : NULL;
    if (!hit) return bad(c, "unknown escape");
    keep(c, &to[hit - from], 1);
    return TG_OK;
}

/* A string into c->key. */
static tg_status read_string(struct cursor *c) {
    tg_buf_reset(&c->key);
    if (!accept(c, '"')) return bad(c, "expected a string");
    for (;;) {
        const char *run = c->at;
        while (c->at < c->end && *c->at != '"' && *c->at != '\\' && (unsigned char)*c->at >= 32)
            c->at++;
        keep(c, run, (size_t)(c->at - run));
        if (c->at == c->end) return bad(c, "the text ends inside a string");
        char ch = *c->at++;
        if (ch == '"') break;
        if (ch != '\\') return bad(c, "control character in a string");
        tg_status st = read_escape(c);
        if (st != TG_OK) return st;
    }
    tg_buf_append(&c->key, "", 0);
    if (c->key.failed || !c->key.data) return tg_fail_nomem(c->err, c->key.len + 1);
    return TG_OK;
}

/* A non-negative integer below 2^62. */
static tg_status read_number(struct cursor *c, int64_t *out) {
    skip_space(c);
    const char *first = c->at;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (value > (INT64_MAX >> 1) / 10 - 9) return bad(c, "number too large");
        value = value * 10 + (*c->at - '0');
    }
    if (c->at == first) return bad(c, "expected a non-negative integer");
    if (*first == '0' && c->at - first > 1) return bad(c, "number with a leading zero");
    *out = value;
    return TG_OK;
}

/* [n, n, ..] of at most max numbers. */
static tg_status read_numbers(struct cursor *c, int64_t *out, int max, int *n) {
    *n = 0;
    if (!accept(c, '[')) return bad(c, "expected a list of numbers");
    if (accept(c, ']')) return TG_OK;
    do {
        if (*n == max) return bad(c, "too many numbers in the list");
        tg_status st = read_number(c, &out[(*n)++]);
        if (st != TG_OK) return st;
    } while (accept(c, ','));
    return accept(c, ']') ? TG_OK : bad(c, "expected , or ]");
}

static tg_status read_dtype(struct cursor *c, tg_dtype *out) {
    tg_status st = read_string(c);
    if (st != TG_OK) return st;
    for (int d = TG_F32; d <= TG_BOOL8; d++) {
        if (!key_is(c, tg_dtype_name((tg_dtype)d))) continue;
        *out = (tg_dtype)d;
        return TG_OK;
    }
    return tg_fail(c->err, TG_DATA,
                   "dtype %.32s is not one of F32, F16, BF16, F64, I32, I64, I16, U8, I8, BOOL",
                   c->key.data);
}

static tg_status read_field(struct cursor *c, struct entry *e) {
    tg_status st = read_string(c);
    if (st != TG_OK) return st;
    bool *seen = NULL;
    if (key_is(c, "dtype"))
        seen = &e->has_dtype;
    else if (key_is(c, "shape"))
        seen = &e->has_shape;
    else if (key_is(c, "data_offsets"))
        seen = &e->has_offsets;
    if (!seen) return bad(c, "only dtype, shape and data_offsets are allowed in a tensor");
    if (*seen) return bad(c, "the same key twice");
    *seen = true;
    if (!accept(c, ':')) return bad(c, "expected :");
    if (seen == &e->has_dtype) return read_dtype(c, &e->dtype);
    if (seen == &e->has_shape) return read_numbers(c, e->shape, TG_ST_MAX_DIMS, &e->ndim);
    int n;
    st = read_numbers(c, e->offsets, 2, &n);
    if (st == TG_OK && n != 2) return bad(c, "data_offsets needs two numbers");
    return st;
}

static tg_status read_entry(struct cursor *c, struct entry *e) {
    if (!accept(c, '{')) return bad(c, "expected an object");
    do {
        tg_status st = read_field(c, e);
        if (st != TG_OK) return st;
    } while (accept(c, ','));
    if (!accept(c, '}')) return bad(c, "expected , or }");
    if (!e->has_dtype || !e->has_shape || !e->has_offsets)
        return bad(c, "a tensor needs dtype, shape and data_offsets");
    return TG_OK;
}

/* Texts by name; the safetensors package takes null for none. */
static tg_status read_metadata(struct cursor *c) {
    skip_space(c);
    if (c->end - c->at >= 4 && !memcmp(c->at, "null", 4)) {
        c->at += 4;
        return TG_OK;
    }
    if (!accept(c, '{')) return bad(c, "__metadata__: expected an object");
    if (accept(c, '}')) return TG_OK;
    do {
        tg_status st = read_string(c);
        if (st == TG_OK && !accept(c, ':')) st = bad(c, "expected :");
        if (st == TG_OK) st = read_string(c);
        if (st != TG_OK) return st;
    } while (accept(c, ','));
    return accept(c, '}') ? TG_OK : bad(c, "expected , or }");
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

static tg_status read_tensor(struct cursor *c, tg_safetensors *st, size_t *cap,
                             const unsigned char *blob, size_t blob_len) {
    if (strlen(c->key.data) != c->key.len) return bad(c, "a name with a NUL character");
    if (c->key.len > TG_ST_MAX_NAME) return bad(c, "too long a name of a tensor");
    if (st->n == TG_ST_MAX_TENSORS) return bad(c, "too many tensors");
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

static tg_status read_header(struct cursor *c, tg_safetensors *st, const unsigned char *blob,
                             size_t blob_len) {
    size_t cap = 0;
    bool metadata = false;
    if (c->at == c->end || *c->at != '{') return bad(c, "expected {");
    c->at++;
    if (accept(c, '}')) return TG_OK;
    do {
        tg_status status = read_string(c);
        if (status != TG_OK) return status;
        if (!accept(c, ':')) return bad(c, "expected :");
        if (!key_is(c, "__metadata__")) {
            status = read_tensor(c, st, &cap, blob, blob_len);
        } else {
            if (metadata) return bad(c, "__metadata__ twice");
            metadata = true;
            status = read_metadata(c);
        }
        if (status != TG_OK) return status;
    } while (accept(c, ','));
    return accept(c, '}') ? TG_OK : bad(c, "expected , or }");
}

tg_status tg_st_header_parse(tg_safetensors *st, const char *file, const char *text, size_t len,
                             const unsigned char *blob, size_t blob_len, tg_error *err) {
    tg_error local = {0}; /* tg_error_prefix needs one */
    struct cursor c = {.text = text, .at = text, .end = text + len, .err = err ? err : &local};
    const size_t valid = tg_json_utf8(text, len);
    c.at = text + valid;
    tg_status status =
        valid < len ? bad(&c, "expected UTF-8 (of names and __metadata__ too)") : TG_OK;
    c.at = text;
    if (status == TG_OK) status = read_header(&c, st, blob, blob_len);
    if (status == TG_OK) {
        skip_space(&c);
        if (c.at != c.end) status = bad(&c, "more text behind the header object");
    }
    tg_buf_fini(&c.key);
    if (status == TG_DATA) tg_error_prefix(c.err, "%s: bad safetensors file: ", file);
    return status;
}
