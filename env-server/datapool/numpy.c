/* PCG64 (O'Neill 2014: a 128-bit congruential generator with XSL-RR output) seeded through numpy's
 * SeedSequence, bounded draws by masked rejection, Fisher-Yates from the end. Pure functions. */
#include "env-server/datapool/numpy.h"

#include "common/base/alloc.h"

#include <stdbool.h>

typedef unsigned __int128 u128;

typedef struct pcg64 {
    u128 state, increment;
    uint32_t kept; /* upper half of the last 64-bit draw */
    bool has_kept;
} pcg64;

/* ---- SeedSequence: entropy to well mixed words --------------------------------------------- */

enum { POOL = 4 };

static uint32_t hash_mix(uint32_t value, uint32_t *constant) {
    value ^= *constant;
    *constant *= 0x931e8875u;
    value *= *constant;
    return value ^ (value >> 16);
}

static uint32_t mix(uint32_t x, uint32_t y) {
    uint32_t result = 0xca01f9ddu * x - 0x4973f715u * y;
    return result ^ (result >> 16);
}

static void seed_words(uint64_t seed, uint32_t *out, unsigned n) {
    uint32_t entropy[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, pool[POOL];
    unsigned n_entropy = entropy[1] ? 2 : 1;
    uint32_t constant = 0x43b0d7e5u;
    for (unsigned i = 0; i < POOL; i++)
        pool[i] = hash_mix(i < n_entropy ? entropy[i] : 0, &constant);
    for (unsigned from = 0; from < POOL; from++)
        for (unsigned to = 0; to < POOL; to++)
            if (from != to) pool[to] = mix(pool[to], hash_mix(pool[from], &constant));
    constant = 0x8b51f9ddu;
    for (unsigned i = 0; i < n; i++) {
        uint32_t value = pool[i % POOL] ^ constant;
        constant *= 0x58f38dedu;
        value *= constant;
        out[i] = value ^ (value >> 16);
    }
}

/* ---- PCG64 --------------------------------------------------------------------------------- */

static const u128 MULTIPLIER = ((u128)2549297995355413924ULL << 64) + 4865540595714422341ULL;

static void step(pcg64 *r) {
    r->state = r->state * MULTIPLIER + r->increment;
}

static void seed_pcg64(pcg64 *r, uint64_t seed) {
    uint32_t w[8];
    seed_words(seed, w, 8);
    uint64_t s[4];
    for (unsigned i = 0; i < 4; i++) s[i] = w[2 * i] | (uint64_t)w[2 * i + 1] << 32;
    u128 initial = (u128)s[0] << 64 | s[1], stream = (u128)s[2] << 64 | s[3];
    *r = (pcg64){.increment = stream << 1 | 1};
    step(r);
    r->state += initial;
    step(r);
}

static uint64_t next64(pcg64 *r) {
    step(r);
    uint64_t folded = (uint64_t)(r->state >> 64) ^ (uint64_t)r->state;
    unsigned turn = (unsigned)(r->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next32(pcg64 *r) {
    if (r->has_kept) {
        r->has_kept = false;
        return r->kept;
    }
    uint64_t draw = next64(r);
    r->has_kept = true;
    r->kept = (uint32_t)(draw >> 32);
    return (uint32_t)draw;
}

/* In [0, largest]. */
static uint64_t below_or_equal(pcg64 *r, uint64_t largest) {
    if (!largest) return 0;
    uint64_t mask = largest, draw;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    do draw = (largest <= UINT32_MAX ? next32(r) : next64(r)) & mask;
    while (draw > largest);
    return draw;
}

tg_status tg_numpy_permutation(uint64_t seed, uint64_t n, uint64_t **out, tg_error *err) {
    uint64_t *order = tg_alloc_array(n ? n : 1, sizeof *order);
    *out = order;
    if (!order) return tg_fail_nomem(err, n * sizeof *order);
    pcg64 rng;
    seed_pcg64(&rng, seed);
    for (uint64_t i = 0; i < n; i++) order[i] = i;
    for (uint64_t i = n; i-- > 1;) {
        uint64_t j = below_or_equal(&rng, i), kept = order[j];
        order[j] = order[i];
        order[i] = kept;
    }
    return TG_OK;
}

uint32_t tg_numpy_shuffle_seed(uint32_t seed, unsigned draw) {
    enum { N = 624, M = 397 };
    uint32_t mt[N] = {seed};
    if (draw == 0) return seed; /* the generator has not been used: its first word */
    for (uint32_t i = 1; i < N; i++) mt[i] = 1812433253u * (mt[i - 1] ^ (mt[i - 1] >> 30)) + i;
    for (unsigned i = 0; i < N; i++) {
        uint32_t y = (mt[i] & 0x80000000u) | (mt[(i + 1) % N] & 0x7fffffffu);
        mt[i] = mt[(i + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    return mt[2 * draw]; /* each shuffle before used two words */
}
