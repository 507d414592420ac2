/* Snappy, gzip and Zstandard through their libraries; LZ4's block format is small enough to be read
 * here. */
#include "env-server/datapool/parquet/codec.h"

#include "env-server/datapool/parquet/meta.h"

#include <snappy-c.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

static bool unpack_gzip(const unsigned char *in, size_t in_len, unsigned char *out,
                        size_t out_len) {
    z_stream z = {0};
    if (inflateInit2(&z, 15 + 32) != Z_OK) return false; /* gzip or zlib */
    size_t done = 0;
    int code = Z_OK;
    while (code == Z_OK || (code == Z_STREAM_END && in_len && done < out_len)) {
        if (code == Z_STREAM_END && inflateReset(&z) != Z_OK) break; /* several members */
        size_t step_in = in_len < 1 << 30 ? in_len : 1 << 30,
               step_out = out_len - done < 1 << 30 ? out_len - done : 1 << 30;
        z.next_in = (unsigned char *)in, z.avail_in = (unsigned)step_in;
        z.next_out = out + done, z.avail_out = (unsigned)step_out;
        code = inflate(&z, Z_NO_FLUSH);
        in += step_in - z.avail_in, in_len -= step_in - z.avail_in;
        done += step_out - z.avail_out;
        if (code == Z_OK && step_in == z.avail_in && step_out == z.avail_out) break;
    }
    inflateEnd(&z);
    return code == Z_STREAM_END && done == out_len;
}

/* A length of 15 goes on in the following bytes. */
static bool lz4_length(const unsigned char **in, const unsigned char *end, size_t *n) {
    if (*n != 15) return true;
    for (unsigned char b = 255; b == 255; *n += b) {
        if (*in >= end || *n > (size_t)1 << 40) return false;
        b = *(*in)++;
    }
    return true;
}

static bool unpack_lz4(const unsigned char *in, size_t in_len, unsigned char *out, size_t out_len) {
    const unsigned char *end = in + in_len;
    size_t done = 0;
    while (in < end) {
        unsigned char token = *in++;
        size_t n = token >> 4;
        if (!lz4_length(&in, end, &n) || n > (size_t)(end - in) || n > out_len - done) return false;
        memcpy(out + done, in, n);
        in += n, done += n;
        if (in == end) break; /* the last sequence has literals only */
        if (end - in < 2) return false;
        size_t back = in[0] | (size_t)in[1] << 8;
        in += 2;
        n = token & 15;
        if (!lz4_length(&in, end, &n)) return false;
        n += 4;
        if (back == 0 || back > done || n > out_len - done) return false;
        for (; n; n--, done++) out[done] = out[done - back]; /* may overlap what it writes */
    }
    return done == out_len;
}

tg_status tg_pq_unpack(int codec, const unsigned char *in, size_t in_len, unsigned char *out,
                       size_t out_len, tg_error *err) {
    static const char *const names[] = {"none",   "snappy", "gzip", "lzo",
                                        "brotli", "lz4",    "zstd", "lz4"};
    bool ok = false;
    size_t n = out_len;
    switch (codec) {
    case TG_PQ_UNCOMPRESSED:
        ok = in_len == out_len;
        if (ok && out_len) memcpy(out, in, out_len);
        break;
    case TG_PQ_SNAPPY:
        ok = snappy_uncompress((const char *)in, in_len, (char *)out, &n) == SNAPPY_OK &&
             n == out_len;
        break;
    case TG_PQ_GZIP: ok = unpack_gzip(in, in_len, out, out_len); break;
    case TG_PQ_ZSTD: ok = ZSTD_decompress(out, out_len, in, in_len) == out_len; break;
    case TG_PQ_LZ4_RAW: ok = unpack_lz4(in, in_len, out, out_len); break;
    default:
        return tg_fail(err, TG_UNSUPPORTED,
                       "Parquet pages packed with %s are not read; write the file with "
                       "compression=\"zstd\"",
                       codec > 0 && codec < 8 ? names[codec] : "an unknown codec");
    }
    return ok ? TG_OK : tg_fail(err, TG_DATA, "a page does not unpack (%s)", names[codec]);
}
