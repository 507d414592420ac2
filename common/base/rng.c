/* Philox4x32-10 after Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11). */
#include "common/base/rng.h"

#include "common/base/check.h"

#include <math.h>

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
    c[0] = n0;
    c[1] = (uint32_t)p1;
    c[2] = n2;
    c[3] = (uint32_t)p0;
}

void tg_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < 4; i++) out[i] = counter[i];
    for (int r = 0; r < 10; r++) {
        philox_round(out, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

tg_rng tg_rng_at(uint64_t seed, tg_rng_domain domain, uint64_t a, uint64_t b) {
    /* counter = [block | a low | a high 8 + b 24 | domain] */
    TG_ASSERT(a < (uint64_t)1 << 40 && b < (uint64_t)1 << 24);
    tg_rng r = {
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, (uint32_t)a, (uint32_t)(a >> 32) << 24 | (uint32_t)b, (uint32_t)domain},
        .used = 4};
    return r;
}

uint32_t tg_rng_u32(tg_rng *r) {
    if (r->used == 4) {
        tg_philox4x32(r->out, r->counter, r->key);
        r->counter[0]++;
        r->used = 0;
    }
    return r->out[r->used++];
}

uint64_t tg_rng_u64(tg_rng *r) {
    uint64_t high = tg_rng_u32(r);
    return high << 32 | tg_rng_u32(r);
}

uint64_t tg_rng_below(tg_rng *r, uint64_t n) {
    TG_ASSERT(n > 0);
    uint64_t reject = (0 - n) % n; /* 2^64 mod n: draws below it would favour small results */
    for (;;) {
        uint64_t x = tg_rng_u64(r);
        if (x >= reject) return x % n;
    }
}

double tg_rng_uniform(tg_rng *r) {
    return (double)(tg_rng_u64(r) >> 11) * 0x1p-53;
}

double tg_rng_normal(tg_rng *r) {
    double u = 1.0 - tg_rng_uniform(r), v = tg_rng_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}

uint64_t tg_permute(uint64_t seed, tg_rng_domain domain, uint64_t round, uint64_t i, uint64_t n) {
    TG_ASSERT(i < n);
    unsigned half = 1; /* bits of each Feistel half: the domain 2^(2*half) covers n */
    while (half < 32 && ((uint64_t)1 << (2 * half)) < n) half++;
    uint32_t mask = half == 32 ? 0xffffffffu : ((uint32_t)1 << half) - 1;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    do {
        uint32_t left = (uint32_t)(i >> half) & mask, right = (uint32_t)i & mask;
        for (uint32_t f = 0; f < 6; f++) {
            uint32_t out[4];
            const uint32_t counter[4] = {right, (uint32_t)round, (uint32_t)(round >> 32),
                                         0x80000000u | f << 16 | (uint32_t)domain};
            tg_philox4x32(out, counter, key);
            uint32_t next = left ^ (out[0] & mask);
            left = right;
            right = next;
        }
        i = (uint64_t)left << half | right;
    } while (i >= n);
    return i;
}
