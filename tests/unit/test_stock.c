/* Blocks that are made of what other blocks gave back: contents, addresses, and that nothing new is asked for while something is kept. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/stock.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNIT = TG_STOCK_UNIT, MIB = 1 << 20, PAGE = 4096 };

/* Bytes of [p, p + n) that have memory behind them. */
static size_t resident(void *p, size_t n) {
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

enum { LAST_ONES = 16 };

typedef struct mappings {
    char *many, *last[LAST_ONES]; /* cut into pages, and the very last */
    size_t bytes;
} mappings;

/* Makes mappings until the system gives no more; false: its limit is too far away. */
static bool exhaust_mappings(mappings *m) {
    enum { MOST = 300000 };
    long limit = MOST + 1;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
    if (f && fscanf(f, "%ld", &limit) != 1) limit = MOST + 1;
    if (f) fclose(f);
    *m = (mappings){.bytes = 2 * (size_t)limit * PAGE};
    if (limit > MOST) return false;
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    m->many = mmap(NULL, m->bytes, PROT_NONE, how, -1, 0);
    if (m->many == MAP_FAILED) return false;
    for (size_t i = PAGE; i < m->bytes; i += 2 * PAGE)
        if (mprotect(m->many + i, PAGE, PROT_READ)) break;
    for (int i = 0; i < LAST_ONES; i++) /* shared ones never become one with a neighbour */
        m->last[i] = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return m->last[LAST_ONES - 1] == MAP_FAILED;
}

static void free_mappings(mappings *m) {
    for (int i = 0; i < LAST_ONES; i++)
        if (m->last[i] && m->last[i] != MAP_FAILED) munmap(m->last[i], PAGE);
    if (m->many && m->many != MAP_FAILED) munmap(m->many, m->bytes);
}

/* A block of several pieces rests, and others that it would be made of are kept; nothing can be mapped or cut any more. */
TEST(no_block_is_lost_at_the_limit_of_mappings) {
    for (int pieces = 1; pieces <= 4; pieces++) {
        tg_stock s = {0};
        unsigned char *small[4] = {0}, *next[4] = {0};
        for (int i = 0; i < pieces; i++) {
            small[i] = tg_stock_alloc(&s, 2 * UNIT);
            next[i] = tg_stock_alloc(&s, UNIT);
            REQUIRE(small[i] && next[i]);
            memset(small[i], 1, 2 * UNIT);
            memset(next[i], 2, UNIT);
        }
        unsigned char *a = tg_stock_alloc(&s, 8 * UNIT);
        REQUIRE(a);
        memset(a, 3, 8 * UNIT);
        tg_stock_rest(&s, a);
        unsigned char *b = tg_stock_alloc(&s, 8 * UNIT); /* has what rests */
        REQUIRE(b);
        memset(b, 4, 8 * UNIT);
        for (int i = 0; i < pieces; i++) tg_stock_free(&s, small[i]);
        mappings m;
        if (exhaust_mappings(&m)) {
            REQUIRE(tg_stock_wake(&s, a));
            CHECK(tg_stock_has(&s, a));
            memset(a, 5, 8 * UNIT);
            unsigned char *c = tg_stock_alloc(&s, UNIT); /* there may be room for one, or none */
            if (c) memset(c, 6, UNIT);
            tg_stock_rest(&s, a);
            CHECK(tg_stock_wake(&s, a));
            memset(a, 7, 8 * UNIT);
            CHECK(c == NULL || all(c, UNIT, 6));
        }
        free_mappings(&m);
        CHECK(all(b, 8 * UNIT, 4));
        for (int i = 0; i < pieces; i++) CHECK(all(next[i], UNIT, 2));
        tg_stock_free(&s, a);
        CHECK(!tg_stock_has(&s, a));
        tg_stock_fini(&s);
    }
}

/* From here on the system moves no memory, and maps none at given addresses. false: it cannot be told so. */
static bool forbid_moves(void) {
    const unsigned how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mremap, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, how, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = TG_COUNT_OF(code), .filter = code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* In a process of its own, which ends with what it found: 0 all is well, 77 nothing could be forbidden. */
static int wake_without_moves(void) {
    tg_stock s = {0};
    unsigned char *a = tg_stock_alloc(&s, 6 * UNIT), *b = tg_stock_alloc(&s, 2 * UNIT);
    if (!a || !b) return 1;
    memset(a, 1, 6 * UNIT);
    memset(b, 2, 2 * UNIT);
    tg_stock_rest(&s, a);
    unsigned char *c = tg_stock_alloc(&s, 4 * UNIT);
    if (!c) return 2;
    memset(c, 3, 4 * UNIT);
    if (!forbid_moves()) return 77;
    if (!tg_stock_wake(&s, a) || !tg_stock_has(&s, a)) return 3;
    memset(a, 4, 6 * UNIT);
    if (resident(a, 6 * UNIT) != 6 * UNIT || !all(b, 2 * UNIT, 2) || !all(c, 4 * UNIT, 3)) return 4;
    tg_stock_free(&s, b);
    unsigned char *d = tg_stock_alloc(&s, 3 * UNIT);
    if (!d) return 5;
    memset(d, 5, 3 * UNIT);
    tg_stock_rest(&s, a); /* nothing can be moved away: the system has the pages */
    if (!all(a, 6 * UNIT, 0) || !tg_stock_wake(&s, a) || !all(d, 3 * UNIT, 5)) return 6;
    tg_stock_free(&s, a);
    if (tg_stock_has(&s, a) || !tg_stock_has(&s, d)) return 7;
    tg_stock_fini(&s);
    return 0;
}

TEST(a_system_that_moves_nothing_gives_fresh_memory) {
    int status = -1;
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) _exit(wake_without_moves());
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) != 77) CHECK_EQ(WEXITSTATUS(status), 0);
}

TEST(absurd_sizes_are_refused) {
    tg_stock s = {0};
    CHECK(tg_stock_alloc(&s, SIZE_MAX) == NULL);
    CHECK(tg_stock_alloc(&s, SIZE_MAX / 2 - UNIT) == NULL);
    tg_stock_fini(&s);
}

TEST_MAIN
