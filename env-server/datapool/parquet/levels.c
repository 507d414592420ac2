/* Runs and bit-packed groups. Pure functions over bounded bytes. */
#include "env-server/datapool/parquet/levels.h"

unsigned tg_pq_bits(uint32_t largest) {
    unsigned bits = 0;
    for (; largest; largest >>= 1) bits++;
    return bits;
}

static bool header(const unsigned char **in, const unsigned char *end, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 42; shift += 7) {
        if (*in >= end) return false;
        unsigned char b = *(*in)++;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

/* The number at a bit offset, low bits first; the caller has checked that it is inside. */
static uint32_t bits_at(const unsigned char *in, size_t len, uint64_t bit, unsigned width) {
    uint64_t value = 0;
    size_t first = (size_t)(bit / 8), n = (bit % 8 + width + 7) / 8;
    for (size_t i = 0; i < n && first + i < len; i++) value |= (uint64_t)in[first + i] << (8 * i);
    return (uint32_t)(value >> (bit % 8) & ((UINT64_C(1) << width) - 1));
}

/* Calls back through out32 or out8, whichever is given. */
static bool decode(const unsigned char *in, size_t len, unsigned width, size_t n, uint32_t largest,
                   uint32_t *out32, uint8_t *out8) {
    const unsigned char *end = in + len;
    size_t done = 0;
    if (width > 32) return false;
    while (done < n) {
        uint64_t head;
        if (!header(&in, end, &head)) return false;
        size_t bytes = (width + 7) / 8;
        if (head & 1) { /* groups of eight */
            uint64_t groups = head >> 1, size = groups * width;
            size_t left = (size_t)(end - in), have = size < left ? (size_t)size : left;
            uint64_t count = groups * 8;
            if (width && have < size) count = (uint64_t)have * 8 / width; /* the last may be cut */
            if (groups == 0 || (width && count == 0)) return false;
            for (uint64_t i = 0; i < count && done < n; i++, done++) {
                uint32_t value = bits_at(in, left, i * width, width);
                if (value > largest) return false;
                if (out32)
                    out32[done] = value;
                else
                    out8[done] = (uint8_t)value;
            }
            in += have;
        } else {
            uint32_t value = 0;
            uint64_t count = head >> 1;
            if ((size_t)(end - in) < bytes || count == 0) return false;
            for (size_t i = 0; i < bytes; i++) value |= (uint32_t)in[i] << (8 * i);
            in += bytes;
            if (value > largest) return false;
            for (; count && done < n; count--, done++) {
                if (out32)
                    out32[done] = value;
                else
                    out8[done] = (uint8_t)value;
            }
        }
    }
    return true;
}

bool tg_pq_hybrid(const unsigned char *in, size_t len, unsigned width, size_t n, uint32_t largest,
                  uint32_t *out) {
    return decode(in, len, width, n, largest, out, NULL);
}

bool tg_pq_levels(const unsigned char *in, size_t len, unsigned largest, size_t n, uint8_t *out) {
    return decode(in, len, tg_pq_bits(largest), n, largest, NULL, out);
}

bool tg_pq_levels_packed(const unsigned char *in, size_t len, unsigned largest, size_t n,
                         uint8_t *out, size_t *used) {
    unsigned width = tg_pq_bits(largest);
    *used = (n * width + 7) / 8;
    if (*used > len) return false;
    uint64_t bit = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned value = 0;
        for (unsigned k = 0; k < width; k++, bit++)
            value = value << 1 | (in[bit / 8] >> (7 - bit % 8) & 1);
        if (value > largest) return false;
        out[i] = (uint8_t)value;
    }
    return true;
}
