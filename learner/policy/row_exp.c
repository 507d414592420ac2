/* The largest element of a row, and exponentials of all: for several instruction sets, none of which may contract a product and a sum.
 * Sums run in a fixed order: four lanes over blocks of 64, then the blocks in double. So the bits are the same from each. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF /* gcc does not contract in ISO C, and does not know the pragma */
#endif
#include "learner/policy/row_exp_isa.h"
#include "learner/policy/row_math.h"

#if defined(__x86_64__)
#define NAME(function) function##_avx2
#define LANES 8
#define FOR_ISA __attribute__((target("avx2")))
#include "learner/policy/row_exp_isa.h"

#define NAME(function) function##_avx512
#define LANES 16
#define FOR_ISA __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "learner/policy/row_exp_isa.h"
#endif

typedef struct row_loops {
    float (*max)(const float *x, int n);
    double (*exp)(const float *x, int n, float top, float *e, float *blocks, int block);
} row_loops;

/* The best first; the last is for any machine. */
static const row_loops loops[] = {
#if defined(__x86_64__)
    {max_row_avx512, exp_row_avx512},
    {max_row_avx2, exp_row_avx2},
#endif
    {max_row_any, exp_row_any},
};

int tg_row_kinds(void) {
    return (int)(sizeof loops / sizeof *loops);
}

bool tg_row_can(int kind) {
#if defined(__x86_64__)
    if (kind == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (kind == 1) return __builtin_cpu_supports("avx2");
#endif
    return kind < tg_row_kinds();
}

static const row_loops *best(void) {
    int kind = 0;
    while (!tg_row_can(kind)) kind++;
    return &loops[kind];
}

float tg_row_max(const float *x, int n) {
    return best()->max(x, n);
}

double tg_row_exp(const float *x, int n, float top, float *e, float *blocks) {
    return best()->exp(x, n, top, e, blocks, TG_ROW_BLOCK);
}

float tg_row_max_by(int kind, const float *x, int n) {
    return loops[kind].max(x, n);
}

double tg_row_exp_by(int kind, const float *x, int n, float top, float *e, float *blocks) {
    return loops[kind].exp(x, n, top, e, blocks, TG_ROW_BLOCK);
}
