/* What the machine can do: multiply-adds from registers, bytes from memory. */
#include "tests/ops/ops.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { FMA_ROUNDS = 1000000, CHAINS = 12, STREAM_FLOATS = 16 << 20, REPEATS = 8 };

/* Twelve independent chains hide the latency. TYPE must be a vector of floats; FMA(a, x, y) is a *
 * x + y. */
#define FMA_LOOP(TYPE, FMA, SPLAT, KEEP)                                                           \
    TYPE a[CHAINS], x = SPLAT(0.9999f), y = SPLAT(1e-4f);                                          \
    for (int i = 0; i < CHAINS; i++) a[i] = SPLAT((float)i);                                       \
    for (int r = 0; r < FMA_ROUNDS; r++) {                                                         \
        _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) {                                \
            a[i] = FMA(a[i], x, y);                                                                \
            KEEP(a[i]);                                                                            \
        }                                                                                          \
    }                                                                                              \
    float sum = 0;                                                                                 \
    for (int i = 0; i < CHAINS; i++) sum += a[i][0];                                               \
    *(volatile float *)out = sum

#if defined(__x86_64__)
#define KEEP_X86(v) __asm__ volatile("" : "+v"(v))
__attribute__((target("avx512f"), optimize("O3"))) static void fma_avx512(float *out) {
    FMA_LOOP(__m512, _mm512_fmadd_ps, _mm512_set1_ps, KEEP_X86);
}
__attribute__((target("avx2,fma"), optimize("O3"))) static void fma_avx2(float *out) {
    FMA_LOOP(__m256, _mm256_fmadd_ps, _mm256_set1_ps, KEEP_X86);
}
#endif

typedef float v4 __attribute__((vector_size(16)));
#define SPLAT4(x) ((v4){x, x, x, x})
#define FMA4(a, x, y) ((a) * (x) + (y))
#define KEEP_ANY(v) __asm__ volatile("" : : "g"(&(v)) : "memory")
__attribute__((optimize("O3"))) static void fma_plain(float *out) {
    FMA_LOOP(v4, FMA4, SPLAT4, KEEP_ANY);
}

typedef struct fma_choice {
    const char *isa;
    void (*run)(float *out);
    int lanes;
} fma_choice;

static fma_choice choose(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return (fma_choice){"avx512", fma_avx512, 16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (fma_choice){"avx2", fma_avx2, 8};
#endif
    return (fma_choice){"plain", fma_plain, 4};
}

const char *ops_isa(void) {
    return choose().isa;
}

static void fma_tile(void *arg, int tile) {
    const fma_choice *f = arg;
    float out;
    (void)tile;
    f->run(&out);
}

static tg_team *team_of(int threads) {
    tg_team *team;
    TG_ASSERT(tg_team_create(&team, threads, NULL) == TG_OK);
    return team;
}

double ops_measure_flops(int threads) {
    tg_team *team = team_of(threads);
    fma_choice f = choose();
    double best = 1e9;
    int n = tg_team_size(team);
    for (int r = 0; r < REPEATS; r++) {
        double t = tg_clock_seconds();
        tg_team_run(team, n, fma_tile, &f);
        t = tg_clock_seconds() - t;
        if (t < best) best = t;
    }
    tg_team_destroy(&team);
    return 2.0 * CHAINS * f.lanes * FMA_ROUNDS * n / best;
}

/* y = a x + y over arrays that no cache holds: 12 bytes an element. */
static void triad_tile(void *arg, int tile) {
    float *y = (float *)arg + (size_t)tile * 2 * STREAM_FLOATS, *x = y + STREAM_FLOATS;
    for (size_t i = 0; i + 4 <= STREAM_FLOATS; i += 4) {
        v4 a, b;
        __builtin_memcpy(&a, x + i, sizeof a);
        __builtin_memcpy(&b, y + i, sizeof b);
        b += a * SPLAT4(0.5f);
        __builtin_memcpy(y + i, &b, sizeof b);
    }
}

double ops_measure_bandwidth(int threads) {
    tg_team *team = team_of(threads);
    int n = tg_team_size(team);
    float *data = tg_alloc_array((size_t)n * 2 * STREAM_FLOATS, sizeof *data);
    TG_ASSERT(data);
    for (size_t i = 0; i < (size_t)n * 2 * STREAM_FLOATS; i += 1024) data[i] = 1;
    double best = 1e9;
    for (int r = 0; r < REPEATS; r++) {
        double t = tg_clock_seconds();
        tg_team_run(team, n, triad_tile, data);
        t = tg_clock_seconds() - t;
        if (t < best) best = t;
    }
    tg_free(data);
    tg_team_destroy(&team);
    return 12.0 * STREAM_FLOATS * n / best;
}
