/* Linear layers on the cpu backend, for every instruction set the machine has: a row's result is the same bits whatever rows it is
 * computed with, and whatever form the weights have. tg-ops compares the values with the reference. */
#include "common/base/alloc.h"
#include "common/base/rng.h"
#include "common/nn/backend.h"
#include "common/nn/bf16.h"
#include "common/nn/cpu/kernels.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>

enum { M = 67, N = 101, K = 901 }; /* K: three blocks of depth, the last one short and odd */

static tg_error err;

typedef struct data {
    float x[M * K], w[K * N], wt[N * K], bias[N], y[M * N], row[N], other[M * N];
    int32_t ids[M];
} data;

static data *make_data(void) {
    data *d = tg_alloc_aligned(sizeof *d, 64);
    if (!d) abort();
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 7, 0);
    for (int i = 0; i < M * K; i++) d->x[i] = (float)tg_rng_uniform(&rng) - 0.5f;
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            d->wt[n * K + k] = d->w[k * N + n] = (float)tg_rng_uniform(&rng) - 0.5f;
    for (int n = 0; n < N; n++) d->bias[n] = (float)n;
    for (int m = 0; m < M; m++) d->ids[m] = (int32_t)tg_rng_below(&rng, N);
    return d;
}

static void *packed(tg_backend *be, const data *d, tg_weight_form form) {
    void *p = tg_backend_alloc(be, tg_weight_bytes(N, K, form), &err);
    if (p) be->ops->weight_pack(be, p, d->w, N, K, false, form);
    return p;
}

static void check_forms(tg_backend *be, data *d) {
    const tg_weight plain = {d->w, TG_WEIGHT_PLAIN, false, false};
    be->ops->linear(be, d->y, d->x, plain, d->bias, M, N, K, false);
    void *p = packed(be, d, TG_WEIGHT_PACKED);
    REQUIRE(p);
    const tg_weight forms[] = {
        plain, {d->wt, TG_WEIGHT_PLAIN, true, false}, {p, TG_WEIGHT_PACKED, false, false}};
    for (int f = 0; f < 3; f++)
        for (int rows = 1; rows <= M; rows += rows < 17 ? 1 : 25)
            for (int m = 0; m + rows <= M; m += rows) {
                be->ops->linear(be, d->other, d->x + m * K, forms[f], d->bias, rows, N, K, false);
                CHECK(!memcmp(d->other, d->y + m * N, (size_t)rows * N * sizeof(float)));
            }
    be->ops->weight_rows(be, d->other, forms[2], d->ids, 7, N, K);
    for (int i = 0; i < 7; i++)
        CHECK(!memcmp(d->other + i * K, d->wt + d->ids[i] * K, K * sizeof(float)));
    tg_backend_free(be, p);
}

static float rounded(float f) {
    return tg_f32_of_bf16(tg_bf16_of_f32(f));
}

/* bf16 is f32 with rounded weights, bit by bit; where bf16 is multiplied by bf16, x is rounded too and a sum has its own order. */
static void check_half(tg_backend *be, data *d, bool pairs) {
    void *p = packed(be, d, TG_WEIGHT_PACKED_BF16);
    REQUIRE(p);
    const tg_weight half = {p, TG_WEIGHT_PACKED_BF16, false, false};
    be->ops->linear(be, d->other, d->x, half, NULL, M, N, K, false);
    for (int i = 0; i < K * N; i++) d->w[i] = rounded(d->w[i]);
    for (int i = 0; i < M * K && pairs; i++) d->x[i] = rounded(d->x[i]);
    be->ops->linear(be, d->y, d->x, (tg_weight){d->w, TG_WEIGHT_PLAIN, false, false}, NULL, M, N, K,
                    false);
    for (int i = 0; i < M * N && pairs; i++) CHECK(fabsf(d->other[i] - d->y[i]) < 2e-5f);
    if (!pairs) CHECK(!memcmp(d->other, d->y, sizeof d->y));
    for (int rows = 1; rows <= M; rows += rows < 17 ? 1 : 25)
        for (int m = 0; m + rows <= M; m += rows) {
            be->ops->linear(be, d->y, d->x + m * K, half, NULL, rows, N, K, false);
            CHECK(!memcmp(d->y, d->other + m * N, (size_t)rows * N * sizeof(float)));
        }
    be->ops->weight_rows(be, d->y, half, d->ids, 7, N, K);
    for (int i = 0; i < 7 * K; i++) CHECK(d->y[i] == d->w[i % K * N + d->ids[i / K]]);
    tg_backend_free(be, p);
}

TEST(rows_do_not_depend_on_each_other) {
    static const char *const isas[] = {"plain", "avx2", "avx512", "avx512_bf16"};
    for (int i = 0; i < 4; i++) {
        setenv("TEXTGEN_CPU_ISA", isas[i], 1);
        for (int threads = 1; threads <= 3; threads++) {
            tg_backend *be;
            data *d = make_data();
            REQUIRE_OK(tg_backend_open(&be, "cpu", threads, &err));
            check_forms(be, d);
            check_half(be, d, be->kernels->gemm_pairs != NULL);
            tg_backend_close(&be);
            tg_free(d);
        }
    }
    unsetenv("TEXTGEN_CPU_ISA");
}

TEST(bf16_rounds_to_nearest_even) {
    static const struct {
        uint32_t f;
        uint16_t h;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81},
                 {0x3f818000, 0x3f82}, {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80},
                 {0x7f800001, 0x7fc0}, {0x00000001, 0x0000}, {0x80000000, 0x8000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float f;
        memcpy(&f, &cases[i].f, sizeof f);
        CHECK_EQ(tg_bf16_of_f32(f), cases[i].h);
    }
}

TEST_MAIN
