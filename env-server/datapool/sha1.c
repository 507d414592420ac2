/* SHA-1 (FIPS 180-4), for names of files only; not for anything that must be secure. */
#include "env-server/datapool/story.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t turn(uint32_t x, unsigned n) {
    return x << n | x >> (32 - n);
}

static void block(uint32_t h[5], const unsigned char *p) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (unsigned i = 16; i < 80; i++) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999u
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                              : (b ^ c ^ d) + 0xca62c1d6u;
        uint32_t next = turn(a, 5) + f + e + w[i];
        e = d, d = c, c = turn(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

void tg_sha1_hex(const char *text, size_t len, char out[41]) {
    uint32_t h[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    size_t at = 0;
    for (; len - at >= 64; at += 64) block(h, (const unsigned char *)text + at);
    unsigned char last[128] = {0};
    size_t rest = len - at, total = rest < 56 ? 64 : 128;
    memcpy(last, text + at, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[total - 1 - i] = (unsigned char)((uint64_t)len * 8 >> (8 * i));
    block(h, last);
    if (total == 128) block(h, last + 64);
    for (unsigned i = 0; i < 5; i++) snprintf(out + 8 * i, 9, "%08x", h[i]);
}
