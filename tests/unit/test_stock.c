/* Blocks that are made of what other blocks gave back: contents, addresses, and that nothing new is asked for while something is kept. */
#include "common/base/alloc.h"
#include "common/base/stock.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNIT = TG_STOCK_UNIT, MIB = 1 << 20 };

/* Bytes of [p, p + n) that have memory behind them. */
static size_t resident(void *p, size_t n) {
    enum { PAGE = 4096 };
    static unsigned char in[64 * UNIT / PAGE];
    if (n > 64 * (size_t)UNIT || mincore(p, n, in)) return 0;
    size_t sum = 0;
    for (size_t i = 0; i < n / PAGE; i++) sum += in[i] & 1 ? PAGE : 0;
    return sum;
}

static bool all(const unsigned char *p, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) return false;
    return true;
}

TEST(blocks_are_whole_units_and_may_be_written) {
    tg_stock s = {0};
    unsigned char *a = tg_stock_alloc(&s, 5 * MIB), *b = tg_stock_alloc(&s, 1);
    REQUIRE(a && b);
    CHECK((uintptr_t)a % UNIT == 0 && (uintptr_t)b % UNIT == 0);
    memset(a, 1, 6 * MIB);
    memset(b, 2, 2 * MIB);
    CHECK(all(a, 6 * MIB, 1) && all(b, 2 * MIB, 2));
    CHECK(tg_stock_has(&s, a) && tg_stock_has(&s, b));
    CHECK(!tg_stock_has(&s, a + 1) && !tg_stock_has(&s, NULL));
    CHECK_EQ(s.kept, 0);
    tg_stock_fini(&s);
    CHECK(s.n == 0 && s.list == NULL);
}

TEST(what_is_freed_makes_the_next_block) {
    tg_stock s = {0};
    unsigned char *a = tg_stock_alloc(&s, 4 * UNIT), *b = tg_stock_alloc(&s, 6 * UNIT);
    REQUIRE(a && b);
    memset(a, 1, 4 * UNIT);
    memset(b, 2, 6 * UNIT);
    tg_stock_free(&s, a);
    tg_stock_free(&s, b);
    CHECK_EQ(s.kept, 10 * UNIT);
    unsigned char *c = tg_stock_alloc(&s, 9 * UNIT);
    REQUIRE(c);
    CHECK_EQ(s.kept, UNIT);
    CHECK_EQ(resident(c, 9 * UNIT), 9 * UNIT); /* before it was touched */
    memset(c, 3, 9 * UNIT);
    unsigned char *d = tg_stock_alloc(&s, 3 * UNIT); /* one is kept, two are new */
    REQUIRE(d);
    CHECK_EQ(s.kept, 0);
    CHECK_EQ(resident(d, 3 * UNIT), UNIT);
    memset(d, 4, 3 * UNIT);
    CHECK(all(c, 9 * UNIT, 3) && all(d, 3 * UNIT, 4));
    tg_stock_fini(&s);
}

TEST(a_resting_block_is_zeros_and_lends_its_memory) {
    tg_stock s = {0};
    unsigned char *a = tg_stock_alloc(&s, 4 * UNIT);
    REQUIRE(a);
    memset(a, 1, 4 * UNIT);
    tg_stock_rest(&s, a);
    tg_stock_rest(&s, a);
    CHECK(tg_stock_has(&s, a));
    CHECK(all(a, 4 * UNIT, 0));
    CHECK_EQ(s.kept, 4 * UNIT);
    unsigned char *b = tg_stock_alloc(&s, 3 * UNIT);
    REQUIRE(b);
    CHECK_EQ(resident(b, 3 * UNIT), 3 * UNIT);
    memset(b, 2, 3 * UNIT);
    CHECK(tg_stock_wake(&s, a)); /* one unit of it is kept, three are new */
    CHECK(tg_stock_wake(&s, a));
    CHECK_EQ(s.kept, 0);
    memset(a, 3, 4 * UNIT);
    CHECK(all(b, 3 * UNIT, 2) && all(a, 4 * UNIT, 3));
    tg_stock_free(&s, b);
    tg_stock_rest(&s, a); /* of two pieces now */
    CHECK_EQ(s.kept, 7 * UNIT);
    CHECK(all(a, 4 * UNIT, 0));
    CHECK(tg_stock_wake(&s, a));
    CHECK_EQ(s.kept, 3 * UNIT);
    CHECK_EQ(resident(a, 4 * UNIT), 4 * UNIT);
    tg_stock_rest(&s, a);
    tg_stock_free(&s, a); /* while it rests */
    CHECK_EQ(s.kept, 7 * UNIT);
    tg_stock_fini(&s);
}

typedef struct model {
    unsigned char *at;
    size_t units;
    unsigned char value;
    bool rests;
} model;

/* What a block must hold after anything that happened to others. */
static bool holds(const model *m) {
    const unsigned char value = m->rests ? 0 : m->value;
    for (size_t u = 0; u < m->units; u++) {
        const unsigned char *unit = m->at + u * UNIT;
        if (unit[0] != value || unit[UNIT / 2 + 77] != value || unit[UNIT - 1] != value)
            return false;
    }
    return true;
}

static void mark(model *m) {
    for (size_t u = 0; u < m->units; u++) {
        unsigned char *unit = m->at + u * UNIT;
        unit[0] = unit[UNIT / 2 + 77] = unit[UNIT - 1] = m->value;
    }
}

/* One random thing to one of the blocks; false: it failed for want of memory. */
static bool happen(tg_stock *s, model *m, tg_rng *rng, int step) {
    const uint64_t what = tg_rng_below(rng, 4);
    if (!m->at) {
        m->units = 1 + tg_rng_below(rng, 5);
        m->rests = false;
        m->value = (unsigned char)(1 + step % 255);
        if (!(m->at = tg_stock_alloc(s, m->units * UNIT))) return false;
        mark(m);
    } else if (what == 0) {
        tg_stock_free(s, m->at);
        m->at = NULL;
    } else if (what == 1) {
        tg_stock_rest(s, m->at);
        m->rests = true;
    } else if (m->rests) {
        if (!tg_stock_wake(s, m->at)) {
            tg_stock_free(s, m->at);
            m->at = NULL;
            return false;
        }
        m->rests = false;
        m->value = (unsigned char)(1 + step % 255);
        mark(m);
    }
    return true;
}

TEST(random_histories_keep_every_block_apart) {
    enum { BLOCKS = 6, STEPS = 600 };
    for (int fail = 0; fail < 2; fail++) {
        tg_stock s = {0};
        model m[BLOCKS] = {0};
        tg_rng rng = tg_rng_at(7, TG_RNG_TEST, 0, 0);
        size_t most = 0;
        int failures = 0;
        for (int step = 0; step < STEPS; step++) {
            if (fail && step % 5 == 0) tg_alloc_fail_after((int64_t)(step % 2));
            failures += !happen(&s, &m[tg_rng_below(&rng, BLOCKS)], &rng, step);
            tg_alloc_fail_after(-1);
            size_t used = 0;
            for (int i = 0; i < BLOCKS; i++) {
                if (!m[i].at) continue;
                if (!m[i].rests) used += m[i].units * UNIT;
                tg_check(holds(&m[i]), __FILE__, __LINE__, "step %d: block %d was written to", step,
                         i);
            }
            most = used > most ? used : most;
            if (!fail)
                tg_check(s.kept + used <= most, __FILE__, __LINE__,
                         "step %d: %zu bytes kept, %zu used, of at most %zu", step, s.kept, used,
                         most);
        }
        CHECK(fail ? failures > 5 : failures == 0);
        tg_stock_fini(&s);
    }
}

TEST(absurd_sizes_are_refused) {
    tg_stock s = {0};
    CHECK(tg_stock_alloc(&s, SIZE_MAX) == NULL);
    CHECK(tg_stock_alloc(&s, SIZE_MAX / 2 - UNIT) == NULL);
    tg_stock_fini(&s);
}

TEST_MAIN
