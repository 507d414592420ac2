#include "common/base/hash.h"

#include <string.h>

static uint64_t load64(const unsigned char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    return h;
}

uint64_t tg_hash64(const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    uint64_t h = 0x9e3779b97f4a7c15u ^ (len * 0xff51afd7ed558ccdu);
    for (; len >= 8; p += 8, len -= 8) h = mix(h ^ load64(p)) * 0x9fb21c651e98df25u;
    uint64_t tail = 0;
    for (size_t i = 0; i < len; i++) tail |= (uint64_t)p[i] << (8 * i);
    return mix(mix(h ^ tail) * 0x9fb21c651e98df25u);
}

static uint64_t rotl(uint64_t x, int b) {
    return (x << b) | (x >> (64 - b));
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1], v[1] = rotl(v[1], 13) ^ v[0], v[0] = rotl(v[0], 32);
    v[2] += v[3], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotl(v[1], 17) ^ v[2], v[2] = rotl(v[2], 32);
}

uint64_t tg_siphash(uint64_t k0, uint64_t k1, const void *bytes, size_t len) {
    const unsigned char *p = bytes;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                     k1 ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)len << 56;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t m = load64(p);
        v[3] ^= m;
        sip_round(v), sip_round(v);
        v[0] ^= m;
    }
    for (size_t i = 0; i < len; i++) last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    sip_round(v), sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The instruction for it: checkpoints are gigabytes. */
__attribute__((target("sse4.2"))) static uint32_t crc_by_machine(uint32_t crc, const void *bytes,
                                                                 size_t len) {
    const unsigned char *p = bytes;
    uint64_t c = ~crc, word;
    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        c = __builtin_ia32_crc32di(c, word);
    }
    for (; len; len--) c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return ~(uint32_t)c;
}
#endif

uint32_t tg_crc32c(uint32_t crc, const void *bytes, size_t len) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("sse4.2")) return crc_by_machine(crc, bytes, len);
#endif
    /* Nibble table of the reflected polynomial 0x82f63b78: 64 bytes, no start-up work. */
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const unsigned char *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}
