/* learner/policy/row_math: against plain double arithmetic and a sort. */
#include "learner/policy/row_math.h"

#include "common/base/check.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 20000 };
static float x[MOST], e[MOST], w[MOST], work[MOST], blocks[MOST];

/* kind 0: normal; 1: many ties; 2: all equal; 3: some -inf. */
static void fill(float *out, int n, int kind, uint64_t seed) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, (uint64_t)n, (uint64_t)kind);
    for (int i = 0; i < n; i++) {
        out[i] = (float)(4 * tg_rng_normal(&r));
        if (kind == 1) out[i] = (float)(int)tg_rng_below(&r, 9) / 4;
        if (kind == 2) out[i] = 1.25f;
        if (kind == 3 && tg_rng_below(&r, 3)) out[i] = -INFINITY;
    }
    if (kind == 3) out[n / 2] = 0.5f;
}

static const int sizes[] = {1, 2, 3, 4, 5, 63, 64, 65, 127, 300, 5000, MOST};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

TEST(maximum_and_exponentials) {
    for (int k = 0; k < 4 * N_SIZES; k++) {
        int n = sizes[k / 4];
        fill(x, n, k % 4, 1);
        float top = -INFINITY;
        for (int i = 0; i < n; i++) top = fmaxf(top, x[i]);
        CHECK(tg_row_max(x, n) == top);
        double total = tg_row_exp(x, n, top, e, blocks), want = 0, worst = 0;
        for (int i = 0; i < n; i++) {
            double exact = exp((double)(x[i] - top));
            want += exact;
            if (exact > 1e-37) worst = fmax(worst, fabs((double)e[i] - exact) / exact);
            CHECK(isfinite(x[i]) || e[i] == 0);
        }
        CHECK(worst < 3e-7);
        CHECK_NEAR(total / want, 1, 1e-6);
        CHECK_NEAR(tg_row_exp(x, n, top, NULL, NULL), total, 0);
    }
    fill(x, 100, 0, 1);
    x[77] = NAN;
    CHECK(isnan(tg_row_max(x, 100)));
    x[77] = 0, x[99] = NAN;
    CHECK(isnan(tg_row_max(x, 100)));
    CHECK(tg_row_max(x, 0) == -INFINITY);
}

TEST(every_instruction_set_gives_the_same_bits) {
    static float by[2][MOST], sums[2][MOST];
    const int any = tg_row_kinds() - 1;
    CHECK(tg_row_can(any));
    for (int k = 0; k < 4 * N_SIZES; k++) {
        const int n = sizes[k / 4];
        fill(x, n, k % 4, 3);
        const float top = tg_row_max_by(any, x, n);
        const double total = tg_row_exp_by(any, x, n, top, by[0], sums[0]);
        for (int kind = 0; kind < any; kind++) {
            if (!tg_row_can(kind)) continue;
            CHECK(tg_row_max_by(kind, x, n) == top);
            CHECK(tg_row_exp_by(kind, x, n, top, by[1], sums[1]) == total);
            CHECK(!memcmp(by[0], by[1], (size_t)n * sizeof by[0][0]));
            CHECK(!memcmp(sums[0], sums[1], (size_t)tg_row_blocks(n) * sizeof sums[0][0]));
        }
    }
}

TEST(the_first_of_equal_elements) {
    for (int k = 0; k < 4 * N_SIZES; k++) {
        const int n = sizes[k / 4];
        fill(x, n, k % 4, 4);
        const float wanted[] = {x[0], x[n / 2], x[n - 1], tg_row_max(x, n)};
        for (size_t i = 0; i < TG_COUNT_OF(wanted); i++) {
            int first = 0;
            while (x[first] != wanted[i]) first++;
            CHECK_EQ(tg_row_first(x, n, wanted[i]), first);
        }
        CHECK_EQ(tg_row_first(x, n, 1e30f), n - 1);
    }
}

TEST(a_place_in_the_cumulative_sum) {
    for (int k = 0; k < 4 * N_SIZES; k++) {
        int n = sizes[k / 4];
        fill(x, n, k % 4, 2);
        double total = tg_row_exp(x, n, tg_row_max(x, n), e, blocks);
        tg_rng r = tg_rng_at(9, TG_RNG_TEST, (uint64_t)k, 0);
        for (int round = 0; round < 40; round++) {
            double u = round == 0 ? 0 : round == 1 ? 1 - 1e-16 : tg_rng_uniform(&r);
            int i = tg_row_find(e, blocks, n, u * total);
            CHECK(i >= 0 && i < n && e[i] > 0);
            double before = 0;
            for (int j = 0; j < i; j++) before += (double)e[j];
            CHECK(before <= u * total + 1e-5 * total);
            CHECK(before + (double)e[i] >= u * total - 1e-5 * total);
        }
    }
}

static int descending(const void *a, const void *b) {
    float p = *(const float *)a, q = *(const float *)b;
    return p > q ? -1 : p < q;
}

TEST(counting_and_dropping) {
    for (int k = 0; k < N_SIZES; k++) {
        int n = sizes[k], at_least = 0;
        fill(x, n, 1, 5);
        fill(w, n, 1, 6);
        memcpy(e, w, (size_t)n * sizeof *e);
        tg_row_drop(w, x, n, 1.0f);
        for (int i = 0; i < n; i++) {
            at_least += x[i] >= 1.0f;
            CHECK(w[i] == (x[i] >= 1.0f ? e[i] : -INFINITY));
        }
        CHECK_EQ(tg_row_count(x, n, 1.0f), at_least);
    }
}

TEST(kth_largest_is_that_of_a_sort) {
    for (int k = 0; k < 3 * N_SIZES; k++) {
        int n = sizes[k / 3];
        fill(x, n, k % 3, 3);
        memcpy(w, x, (size_t)n * sizeof *x);
        qsort(w, (size_t)n, sizeof *w, descending);
        const int places[] = {1, 2, n / 3, 50, 255, 256, 257, n - 1, n};
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            if (places[p] >= 1 && places[p] <= n)
                CHECK(tg_row_kth_largest(x, n, places[p], work) == w[places[p] - 1]);
    }
}

static int by_key(const void *a, const void *b) {
    int i = *(const int *)a, j = *(const int *)b;
    return e[i] != e[j] ? (e[i] < e[j] ? -1 : 1) : i < j ? -1 : 1;
}

TEST(mass_is_that_of_a_stable_sort) {
    static int order[MOST];
    for (int k = 0; k < 4 * N_SIZES; k++) {
        int n = sizes[k / 4];
        fill(x, n, k % 4, 4);
        double total = tg_row_exp(x, n, tg_row_max(x, n), e, NULL);
        for (int i = 0; i < n; i++) order[i] = i;
        qsort(order, (size_t)n, sizeof *order, by_key);
        const double shares[] = {0, 0.1, 0.5, 0.9, 0.999, 1.1};
        for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
            for (int inclusive = 0; inclusive < 2; inclusive++) {
                double target = shares[s] * total, sum = 0;
                int at = 0, first;
                for (; at + 1 < n; at++) {
                    sum += (double)e[order[at]];
                    if (inclusive ? sum >= target : sum > target) break;
                }
                for (first = at; first > 0 && e[order[first - 1]] == e[order[at]];) first--;
                float key;
                int skipped;
                tg_row_mass(e, e, n, target, inclusive, &key, &skipped);
                /* sums in another order may round to the neighbour, and only there */
                bool same = key == e[order[at]] && skipped == at - first;
                bool near = false;
                for (int d = -1; d <= 1; d++)
                    near = near || (at + d >= 0 && at + d < n && key == e[order[at + d]]);
                CHECK(same || (n > 1000 && near));
            }
        }
    }
}

TEST_MAIN
