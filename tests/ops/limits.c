/* What the machine can do: multiply-adds from registers by each instruction set it has, bytes from memory. */
#include "tests/ops/ops.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { FMA_ROUNDS = 1000000, CHAINS = 12, STREAM_FLOATS = 16 << 20, REPEATS = 8, FMA_REPEATS = 80 };

/* Twelve independent chains hide the latency; they have names so that they stay in registers. */
#define FOR_CHAINS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define STEP(i) a##i = MULTIPLY_ADD(a##i, x, y);
#define HOLD(i) __asm__ volatile("" : REGISTER(a##i));
#define FMA_LOOP(TYPE, SPLAT)                                                                      \
    TYPE x = SPLAT(0.9999f), y = SPLAT(1e-4f), a0 = y, a1 = y, a2 = y, a3 = y, a4 = y, a5 = y;     \
    TYPE a6 = y, a7 = y, a8 = y, a9 = y, a10 = y, a11 = y;                                         \
    for (int r = 0; r < FMA_ROUNDS; r++) {                                                         \
        FOR_CHAINS(STEP) FOR_CHAINS(HOLD)                                                          \
    }                                                                                              \
    a0 += a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;                                  \
    *out = a0[0]

#if defined(__x86_64__)
#define REGISTER(a) "+v"(a)
#define MULTIPLY_ADD _mm512_fmadd_ps
__attribute__((target("avx512f"))) static void fma_avx512(float *out) {
    FMA_LOOP(__m512, _mm512_set1_ps);
}
#undef MULTIPLY_ADD
#define MULTIPLY_ADD _mm256_fmadd_ps
__attribute__((target("avx2,fma"))) static void fma_avx2(float *out) {
    FMA_LOOP(__m256, _mm256_set1_ps);
}
#undef MULTIPLY_ADD
/* Pairs of bf16, added up in f32: twice the multiply-adds of an instruction. */
#define PAIR(x) ((__m512)_mm512_set1_epi32((x) > 0.5f ? 0x3f7f3f7f : 0x38d138d1))
#define MULTIPLY_ADD(a, x, y) _mm512_dpbf16_ps(a, (__m512bh)(x), (__m512bh)(y))
__attribute__((target("avx512f,avx512bf16"))) static void fma_avx512_bf16(float *out) {
    FMA_LOOP(__m512, PAIR);
}
#undef MULTIPLY_ADD
#else
#define REGISTER(a) "+m"(a)
#endif

typedef float v4 __attribute__((vector_size(16)));
#define SPLAT4(x) ((v4){x, x, x, x})
#define MULTIPLY_ADD(a, x, y) ((a) * (x) + (y))
static void fma_plain(float *out) {
    FMA_LOOP(v4, SPLAT4);
}

typedef struct fma_kind {
    const char *isa; /* as TEXTGEN_CPU_ISA names it */
    void (*run)(float *out);
    int products; /* of one instruction */
} fma_kind;

#if defined(__x86_64__)
#define HAS(feature) (__builtin_cpu_supports(feature) != 0)
#endif

/* Those this machine has, the best for f32 first, products of bf16 last. */
static int find_kinds(fma_kind out[4]) {
    int n = 0;
#if defined(__x86_64__)
    if (HAS("avx512f")) out[n++] = (fma_kind){"avx512", fma_avx512, 16};
    if (HAS("avx2") && HAS("fma")) out[n++] = (fma_kind){"avx2", fma_avx2, 8};
#endif
    if (!n) out[n++] = (fma_kind){"plain", fma_plain, 4};
#if defined(__x86_64__)
    if (HAS("avx512bf16")) out[n++] = (fma_kind){"avx512_bf16", fma_avx512_bf16, 32};
#endif
    return n;
}

const char *ops_isa(int i) {
    fma_kind kinds[4];
    return i < find_kinds(kinds) ? kinds[i].isa : NULL;
}

const char *ops_isa_chosen(void) {
    const char *wanted = getenv("TEXTGEN_CPU_ISA");
    for (int i = 0; wanted && ops_isa(i); i++)
        if (!strcmp(ops_isa(i), wanted) && strcmp(wanted, "avx512_bf16")) return ops_isa(i);
    return ops_isa(0);
}

static void fma_tile(void *arg, int tile) {
    const fma_kind *f = arg;
    float out;
    (void)tile;
    f->run(&out);
}

static tg_team *team_of(int threads) {
    tg_team *team;
    TG_ASSERT(tg_team_create(&team, threads, NULL) == TG_OK);
    return team;
}

double ops_measure_flops(const char *isa, int threads) {
    tg_team *team = team_of(threads);
    fma_kind kinds[4], f;
    int found = find_kinds(kinds);
    f = kinds[0];
    for (int i = 1; i < found; i++)
        if (!strcmp(kinds[i].isa, isa)) f = kinds[i];
    double best = 1e9;
    int n = tg_team_size(team);
    for (int r = 0; r < FMA_REPEATS; r++) {
        double t = tg_clock_seconds();
        tg_team_run(team, n, fma_tile, &f);
        t = tg_clock_seconds() - t;
        if (t < best) best = t;
    }
    tg_team_destroy(&team);
    return 2.0 * CHAINS * f.products * FMA_ROUNDS * n / best;
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

static v4 read4(const float *p) {
    v4 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

/* The same arrays, read only: 8 bytes an element. The sums have names so that they stay in registers. */
static void read_tile(void *arg, int tile) {
    const float *x = (const float *)arg + (size_t)tile * 2 * STREAM_FLOATS;
    const float *end = x + 2 * (size_t)STREAM_FLOATS;
    v4 a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (; x < end; x += 32) {
        a += read4(x), b += read4(x + 4), c += read4(x + 8), d += read4(x + 12);
        e += read4(x + 16), f += read4(x + 20), g += read4(x + 24), h += read4(x + 28);
    }
    a += b + c + d + e + f + g + h;
    __asm__ volatile("" : : "m"(a)); /* somebody wants it */
}

tg_op_memory ops_measure_memory(int threads) {
    tg_team *team = team_of(threads);
    const int n = tg_team_size(team);
    float *data = tg_alloc_array((size_t)n * 2 * STREAM_FLOATS, sizeof *data);
    TG_ASSERT(data);
    for (size_t i = 0; i < (size_t)n * 2 * STREAM_FLOATS; i += 1024) data[i] = 1;
    double update = 1e9, read = 1e9;
    for (int r = 0; r < REPEATS; r++) {
        double t = tg_clock_seconds();
        tg_team_run(team, n, triad_tile, data);
        double between = tg_clock_seconds();
        tg_team_run(team, n, read_tile, data);
        update = fmin(update, between - t), read = fmin(read, tg_clock_seconds() - between);
    }
    tg_free(data);
    tg_team_destroy(&team);
    const double elements = (double)STREAM_FLOATS * n;
    return (tg_op_memory){.update = 12 * elements / update, .read = 8 * elements / read};
}
