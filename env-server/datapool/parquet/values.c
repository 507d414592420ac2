/* Decoding of values: plain, run lengths, deltas, split bytes. Every read is bounded. */
#include "env-server/datapool/parquet/values.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "env-server/datapool/parquet/levels.h"

#include <math.h>
#include <string.h>

static tg_status broken(tg_error *err) {
    return tg_fail(err, TG_DATA, "a page ends before its values do");
}

static double half(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double value = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(fraction + 1024, exponent - 25);
    return h >> 15 ? -value : value;
}

/* Bytes of one plain value; 0: not fixed. */
static size_t width_of(const tg_pq_node *leaf) {
    switch (leaf->type) {
    case TG_PQ_INT32:
    case TG_PQ_FLOAT: return 4;
    case TG_PQ_INT64:
    case TG_PQ_DOUBLE: return 8;
    case TG_PQ_FIXED: return (size_t)leaf->fixed_len;
    default: return 0;
    }
}

/* One value of fixed width at p; at is its offset. */
static tg_pq_value fixed_value(const tg_pq_node *leaf, const unsigned char *p, size_t at) {
    tg_pq_value v = {.i = 0};
    int32_t i32;
    uint16_t h;
    float f;
    switch (leaf->type) {
    case TG_PQ_INT32:
        memcpy(&i32, p, 4);
        v.i = leaf->meaning == TG_PQ_UNSIGNED ? (int64_t)(uint32_t)i32 : i32;
        break;
    case TG_PQ_INT64: memcpy(&v.i, p, 8); break;
    case TG_PQ_FLOAT:
        memcpy(&f, p, 4);
        v.d = (double)f;
        break;
    case TG_PQ_DOUBLE: memcpy(&v.d, p, 8); break;
    default:
        if (leaf->meaning == TG_PQ_FLOAT16 && leaf->fixed_len == 2) {
            memcpy(&h, p, 2);
            v.d = half(h);
        } else {
            v.text.at = (uint32_t)at;
            v.text.len = (uint32_t)leaf->fixed_len;
        }
    }
    return v;
}

static tg_status read_plain(const tg_pq_node *leaf, const unsigned char *in, size_t len,
                            tg_pq_values *out, tg_error *err) {
    size_t width = width_of(leaf), at = 0;
    if (leaf->type == TG_PQ_BOOLEAN) {
        if (out->n > len * 8) return broken(err);
        for (size_t i = 0; i < out->n; i++) out->v[i].i = in[i / 8] >> (i % 8) & 1;
        return TG_OK;
    }
    for (size_t i = 0; i < out->n; i++) {
        if (width) {
            if (len - at < width) return broken(err);
            out->v[i] = fixed_value(leaf, in + at, at);
            at += width;
            continue;
        }
        uint32_t size;
        if (len - at < 4) return broken(err);
        memcpy(&size, in + at, 4);
        at += 4;
        if (size > len - at) return broken(err);
        out->v[i].text.at = (uint32_t)at;
        out->v[i].text.len = size;
        at += size;
    }
    return TG_OK;
}

/* Truth values as runs behind their length. */
static tg_status read_runs(const tg_pq_node *leaf, const unsigned char *in, size_t len,
                           tg_pq_values *out, tg_error *err) {
    uint32_t size;
    if (leaf->type != TG_PQ_BOOLEAN || len < 4) return broken(err);
    memcpy(&size, in, 4);
    uint32_t *bits = tg_alloc_array(out->n ? out->n : 1, sizeof *bits);
    if (!bits) return tg_fail_nomem(err, out->n * sizeof *bits);
    bool ok = size <= len - 4 && tg_pq_hybrid(in + 4, size, 1, out->n, 1, bits);
    for (size_t i = 0; ok && i < out->n; i++) out->v[i].i = bits[i];
    tg_free(bits);
    return ok ? TG_OK : broken(err);
}

/* ---- deltas -------------------------------------------------------------------------------- */

static bool varint(const unsigned char **in, const unsigned char *end, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (*in >= end) return false;
        unsigned char b = *(*in)++;
        if (shift < 64) *out |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

static uint64_t unzigzag(uint64_t v) {
    return v >> 1 ^ (0 - (v & 1));
}

static uint64_t wide_bits(const unsigned char *in, uint64_t bit, unsigned width) {
    uint64_t value = 0;
    for (unsigned k = 0; k < width; k++, bit++)
        value |= (uint64_t)(in[bit / 8] >> (bit % 8) & 1) << k;
    return value;
}

/* Exactly n numbers; *in goes on behind them. Arithmetic wraps, as the format has it. */
static bool read_delta(const unsigned char **in, const unsigned char *end, size_t n,
                       tg_pq_value *out) {
    uint64_t block, minis, total, value, smallest;
    if (!varint(in, end, &block) || !varint(in, end, &minis) || !varint(in, end, &total) ||
        !varint(in, end, &value))
        return false;
    if (total != n || minis == 0 || minis > 1 << 16 || block % minis || block > 1 << 24 ||
        block == 0)
        return false;
    uint64_t per_mini = block / minis;
    if (per_mini % 8) return false;
    value = unzigzag(value);
    size_t done = 0;
    if (n) out[done++].i = (int64_t)value;
    while (done < n) {
        if (!varint(in, end, &smallest) || (uint64_t)(end - *in) < minis) return false;
        const unsigned char *widths = *in;
        *in += minis;
        for (uint64_t m = 0; m < minis && done < n; m++) {
            uint64_t bytes = per_mini / 8 * widths[m];
            if (widths[m] > 64 || bytes > (uint64_t)(end - *in)) return false;
            for (uint64_t i = 0; i < per_mini && done < n; i++) {
                value += unzigzag(smallest) + wide_bits(*in, i * widths[m], widths[m]);
                out[done++].i = (int64_t)value;
            }
            *in += bytes;
        }
    }
    return true;
}

static tg_status read_delta_numbers(const tg_pq_node *leaf, const unsigned char *in, size_t len,
                                    tg_pq_values *out, tg_error *err) {
    if ((leaf->type != TG_PQ_INT32 && leaf->type != TG_PQ_INT64) ||
        !read_delta(&in, in + len, out->n, out->v))
        return broken(err);
    for (size_t i = 0; i < out->n && leaf->type == TG_PQ_INT32; i++)
        out->v[i].i = leaf->meaning == TG_PQ_UNSIGNED ? (int64_t)(uint32_t)out->v[i].i
                                                      : (int64_t)(int32_t)out->v[i].i;
    return TG_OK;
}

static tg_status read_delta_lengths(const unsigned char *in, size_t len, tg_pq_values *out,
                                    tg_error *err) {
    const unsigned char *at = in, *end = in + len;
    if (!read_delta(&at, end, out->n, out->v)) return broken(err);
    for (size_t i = 0; i < out->n; i++) {
        int64_t size = out->v[i].i;
        if (size < 0 || size > end - at) return broken(err);
        out->v[i].text.at = (uint32_t)(at - in);
        out->v[i].text.len = (uint32_t)size;
        at += size;
    }
    return TG_OK;
}

/* Each text as how much of the one before it keeps, and the rest. */
static tg_status read_delta_texts(const unsigned char *in, size_t len, tg_pq_values *out,
                                  tg_error *err) {
    const unsigned char *at = in, *end = in + len;
    tg_pq_value *prefix = tg_alloc_array(out->n ? out->n : 1, sizeof *prefix);
    tg_buf bytes = {0};
    if (!prefix) return tg_fail_nomem(err, out->n * sizeof *prefix);
    bool ok = read_delta(&at, end, out->n, prefix) && read_delta(&at, end, out->n, out->v);
    size_t last = 0, last_len = 0;
    for (size_t i = 0; ok && i < out->n; i++) {
        int64_t kept = prefix[i].i, rest = out->v[i].i;
        ok = kept >= 0 && (uint64_t)kept <= last_len && rest >= 0 && rest <= end - at &&
             bytes.len + (uint64_t)kept + (uint64_t)rest <= UINT32_MAX;
        if (!ok || !tg_buf_reserve(&bytes, (size_t)(kept + rest))) break;
        size_t begin = bytes.len;
        tg_buf_append(&bytes, bytes.data + last, (size_t)kept);
        tg_buf_append(&bytes, at, (size_t)rest);
        at += rest;
        last = begin, last_len = (size_t)(kept + rest);
        out->v[i].text.at = (uint32_t)begin;
        out->v[i].text.len = (uint32_t)last_len;
    }
    tg_free(prefix);
    tg_status st = !ok ? broken(err) : bytes.failed ? tg_fail_nomem(err, bytes.len) : TG_OK;
    if (st == TG_OK && !bytes.data) tg_buf_putc(&bytes, 0);
    if (st == TG_OK)
        out->bytes = (unsigned char *)tg_buf_take(&bytes);
    else
        tg_buf_fini(&bytes);
    return st == TG_OK && !out->bytes ? tg_fail_nomem(err, 1) : st;
}

/* The first bytes of all values, then the second … */
static tg_status read_split(const tg_pq_node *leaf, const unsigned char *in, size_t len,
                            tg_pq_values *out, tg_error *err) {
    size_t width = width_of(leaf), n = out->n;
    if (!width || n > len / width) return broken(err);
    out->bytes = tg_alloc_array(n ? n : 1, width);
    if (!out->bytes) return tg_fail_nomem(err, n * width);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < width; k++) out->bytes[i * width + k] = in[k * n + i];
        out->v[i] = fixed_value(leaf, out->bytes + i * width, i * width);
    }
    return TG_OK;
}

tg_status tg_pq_values_read(const tg_pq_node *leaf, int encoding, const unsigned char *in,
                            size_t len, size_t n, tg_pq_values *out, tg_error *err) {
    bool text = leaf->type == TG_PQ_BYTE_ARRAY || leaf->type == TG_PQ_FIXED;
    *out = (tg_pq_values){.v = tg_alloc_array(n ? n : 1, sizeof *out->v), .n = n};
    if (!out->v) return tg_fail_nomem(err, n * sizeof *out->v);
    tg_status st;
    if (encoding == TG_PQ_ENC_PLAIN && leaf->type != TG_PQ_INT96)
        st = read_plain(leaf, in, len, out, err);
    else if (encoding == TG_PQ_ENC_RLE)
        st = read_runs(leaf, in, len, out, err);
    else if (encoding == TG_PQ_ENC_DELTA)
        st = read_delta_numbers(leaf, in, len, out, err);
    else if (encoding == TG_PQ_ENC_DELTA_LENGTH && leaf->type == TG_PQ_BYTE_ARRAY)
        st = read_delta_lengths(in, len, out, err);
    else if (encoding == TG_PQ_ENC_DELTA_BYTES && text)
        st = read_delta_texts(in, len, out, err);
    else if (encoding == TG_PQ_ENC_SPLIT)
        st = read_split(leaf, in, len, out, err);
    else
        st = tg_fail(err, TG_UNSUPPORTED, "Parquet's encoding %d of type %d is not read", encoding,
                     leaf->type);
    if (st != TG_OK) tg_pq_values_fini(out);
    return st;
}

void tg_pq_values_fini(tg_pq_values *v) {
    tg_free(v->v);
    tg_free(v->bytes);
    *v = (tg_pq_values){0};
}
