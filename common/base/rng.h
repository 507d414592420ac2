/* Counter-based random numbers (Philox4x32-10): a draw is a pure function of (seed, domain, counters).
 *
 *     tg_rng r = tg_rng_at(seed, TG_RNG_SAMPLE, episode, step);
 *     double u = tg_rng_uniform(&r);
 *
 * No state is shared between streams: any worker, in any order, draws the same numbers, and a resumed run
 * needs no saved generator. Not for keys or secrets. */
#ifndef TG_BASE_RNG_H
#define TG_BASE_RNG_H

#include <stdint.h>

/* What a stream is for. Values are part of the reproducibility contract: never renumber. */
typedef enum tg_rng_domain {
    TG_RNG_PROMPT = 1,    /* which prompt an episode gets */
    TG_RNG_SAMPLE = 2,    /* token sampling in rollouts */
    TG_RNG_EVAL = 3,      /* token sampling in evaluation and `textgen generate` */
    TG_RNG_MINIBATCH = 4, /* minibatch order */
    TG_RNG_INIT = 5,      /* weight initialisation */
    TG_RNG_DATA = 6,      /* generated or shuffled training data */
    TG_RNG_BOOTSTRAP = 7, /* bootstrap resampling in metrics */
    TG_RNG_JITTER = 8,    /* back-off of retries; never part of a result */
    TG_RNG_TEST = 9,
    TG_RNG_SEARCH = 10 /* where a conjugate gradient starts */
} tg_rng_domain;

typedef struct tg_rng {
    uint32_t key[2]; /* private */
    uint32_t counter[4];
    uint32_t out[4];
    unsigned used;
} tg_rng;

/* A stream for (domain, a, b): 2^32 blocks of four 32-bit draws. a < 2^40 and b < 2^24 keep streams apart. */
tg_rng tg_rng_at(uint64_t seed, tg_rng_domain domain, uint64_t a, uint64_t b);

uint32_t tg_rng_u32(tg_rng *r);
uint64_t tg_rng_u64(tg_rng *r);
uint64_t tg_rng_below(tg_rng *r, uint64_t n); /* uniform in [0, n), no modulo bias; n > 0 */
double tg_rng_uniform(tg_rng *r);             /* [0, 1) with 53 random bits */
double tg_rng_normal(tg_rng *r);              /* mean 0, variance 1 (Box-Muller, two draws each) */

/* Position `i` of a keyed permutation of [0, n): a Feistel network with cycle walking. No array, O(1) seek;
 * `round` selects the permutation (e.g. the pass over the data). */
uint64_t tg_permute(uint64_t seed, tg_rng_domain domain, uint64_t round, uint64_t i, uint64_t n);

/* One Philox4x32-10 block, exposed for the known-answer test. */
void tg_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

#endif
