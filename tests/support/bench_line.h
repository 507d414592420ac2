/* What a benchmark reports: one JSON object a line on stdout, which tests/bench/run.sh collects and bench-table sets beside the
 * peers' and the machine's limit.
 *
 *     double s = tg_bench_best(step, &state);                   // seconds of the fastest of several runs
 *     tg_bench_line(&(tg_bench_result){"gpt2-124m/forward", s, .flops = f});
 */
#ifndef TG_TEST_BENCH_LINE_H
#define TG_TEST_BENCH_LINE_H

#include <stdbool.h>

typedef struct tg_bench_result {
    const char *name;    /* the same as the peer's */
    double seconds;      /* of one run */
    double flops, bytes; /* at least to multiply, and to read; 0: no such limit is known */
    double first_flops;  /* of flops: of a phase that reads little, before the one that reads (prompts) */
    double peak_mb;      /* memory; 0: not measured */
    const char *who;     /* NULL: "textgen" */
    const char *
        isa; /* whose multiply-adds the limit is made of (avx2, avx512_bf16); NULL: the best there is for f32 */
} tg_bench_result;

/* $TEXTGEN_BENCH_QUICK is set: everything is to run once, with smaller shapes, to see that it works. */
bool tg_bench_quick(void);

/* One run to warm up, then at least 3 and about 5 s of them; quick: one. */
double tg_bench_best(void (*run)(void *arg), void *arg);
void tg_bench_line(const tg_bench_result *r);
double tg_bench_peak_mb(void); /* of this process so far */

#endif
