/* The n-gram matcher against counting by hand, for short and long hypotheses. */
#include "common/base/rng.h"
#include "env-server/metric/matcher.h"
#include "tests/support/tg_test.h"

enum { MOST = 400, REFS = 3 };

static size_t count(const uint32_t *v, size_t n, const uint32_t *gram, unsigned order) {
    size_t found = 0;
    for (size_t i = 0; i + order <= n; i++) found += !memcmp(v + i, gram, order * sizeof *gram);
    return found;
}

/* Sum over the hypothesis' n-grams of the smaller of its count and the largest in a reference. */
static uint64_t naive(const uint32_t *hyp, size_t n, uint32_t (*refs)[MOST], const size_t *lens,
                      size_t n_refs, unsigned order) {
    uint64_t sum = 0;
    for (size_t i = 0; i + order <= n; i++) {
        if (count(hyp, i + order - 1, hyp + i, order)) continue; /* not the first of its kind */
        size_t own = count(hyp, n, hyp + i, order), best = 0;
        for (size_t r = 0; r < n_refs; r++) {
            size_t there = count(refs[r], lens[r], hyp + i, order);
            if (there > best) best = there;
        }
        sum += own < best ? own : best;
    }
    return sum;
}

TEST(matches_are_those_of_counting) {
    static uint32_t hyp[MOST], refs[REFS][MOST];
    tg_matcher m = {0};
    tg_rng r = tg_rng_at(11, TG_RNG_TEST, 0, 0);
    static const size_t lengths[] = {0,  1,   2,   3,   5,   20,  63,  64,
                                     65, 127, 128, 129, 200, 256, 257, MOST};
    for (int round = 0; round < 300; round++) {
        size_t n = lengths[tg_rng_below(&r, sizeof lengths / sizeof *lengths)], lens[REFS];
        unsigned order = 1 + (unsigned)tg_rng_below(&r, TG_MATCHER_ORDER);
        uint64_t words = tg_rng_below(&r, 2) ? 3 : 60, match[TG_MATCHER_ORDER];
        uint32_t base = tg_rng_below(&r, 4) ? 0 : 5000;
        for (size_t i = 0; i < n; i++) hyp[i] = base + (uint32_t)tg_rng_below(&r, words);
        tg_matcher_hypothesis(&m, hyp, n, order);
        for (size_t k = 0; k < REFS; k++) {
            lens[k] = lengths[tg_rng_below(&r, sizeof lengths / sizeof *lengths)];
            for (size_t i = 0; i < lens[k]; i++)
                refs[k][i] = i < n && tg_rng_below(&r, 2) ? hyp[i]
                             : tg_rng_below(&r, 20)       ? base + (uint32_t)tg_rng_below(&r, words)
                                                          : 900000;
            tg_matcher_reference(&m, refs[k], lens[k], match);
            for (unsigned o = 1; o <= order; o++)
                CHECK_EQ(match[o - 1], naive(hyp, n, refs + k, lens + k, 1, o));
        }
        tg_matcher_all(&m, match);
        for (unsigned o = 1; o <= order; o++)
            CHECK_EQ(match[o - 1], naive(hyp, n, refs, lens, REFS, o));
    }
    CHECK(!m.failed);
    tg_matcher_fini(&m);
}

TEST_MAIN
