/* Matrix products at the shapes of a GPT-2 training step: our matmul beside one big call of OpenBLAS, and of oneDNN where it is installed
 * (Debian: libdnnl-dev), with their own threads.
 *
 *   bench_gemm [THREADS]     (0 or nothing: one per CPU); a table on stdout, JSON lines into $TEXTGEN_BENCH_JSON when set */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/nn/backend.h"
#include "tests/support/bench_line.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct shape {
    const char *what;
    int M, N, K;
    bool ta, tb, accumulate, rounded;
} shape;

static const shape shapes[] = {
    {"gemm/4096x768x768", 4096, 768, 768, 0, 0, 0, 0},
    {"gemm/4096x3072x768", 4096, 3072, 768, 0, 0, 0, 0},
    {"gemm/4096x768x3072", 4096, 768, 3072, 0, 0, 0, 0},
    {"gemm/16x3072x768", 16, 3072, 768, 0, 0, 0, 0},
    {"gemm/4096x768x768_bf16", 4096, 768, 768, 0, 0, 0, 1},
    {"gemm/4096x3072x768_bf16", 4096, 3072, 768, 0, 0, 0, 1},
    {"gemm/4096x768x3072_bf16", 4096, 768, 3072, 0, 0, 0, 1},
    {"gemm/16x3072x768_bf16", 16, 3072, 768, 0, 0, 0, 1},
    {"qkv", 896, 2304, 768, 0, 0, 0, 0},
    {"attention out", 896, 768, 768, 0, 0, 0, 0},
    {"mlp up", 896, 3072, 768, 0, 0, 0, 0},
    {"mlp down", 896, 768, 3072, 0, 0, 0, 0},
    {"mlp up, dx", 896, 768, 3072, 0, 1, 1, 0},
    {"mlp down, dx", 896, 3072, 768, 0, 1, 0, 0},
    {"mlp up, dw", 768, 3072, 896, 1, 0, 1, 0},
    {"mlp down, dw", 3072, 768, 896, 1, 0, 1, 0},
    {"logits", 384, 50257, 768, 0, 1, 0, 0},
    {"decode, 1 row", 1, 3072, 768, 0, 0, 0, 0},
    {"decode, 8 rows", 8, 3072, 768, 0, 0, 0, 0},
    {"decode, 32 rows", 32, 3072, 768, 0, 0, 0, 0},
    {"decode logits, 8", 8, 50257, 768, 0, 1, 0, 0},
    {"decode logits, 32", 32, 50257, 768, 0, 1, 0, 0},
    {"small mlp up", 600, 512, 128, 0, 0, 0, 0},
    {"small mlp up, dw", 128, 512, 600, 1, 0, 1, 0},
    {"qkv, bf16", 896, 2304, 768, 0, 0, 0, 1},
    {"attention out, bf16", 896, 768, 768, 0, 0, 0, 1},
    {"mlp up, bf16", 896, 3072, 768, 0, 0, 0, 1},
    {"mlp down, bf16", 896, 768, 3072, 0, 0, 0, 1},
    {"mlp up, dx, bf16", 896, 768, 3072, 0, 1, 1, 1},
    {"mlp down, dx, bf16", 896, 3072, 768, 0, 1, 0, 1},
    {"mlp up, dw, bf16", 768, 3072, 896, 1, 0, 1, 1},
    {"mlp down, dw, bf16", 3072, 768, 896, 1, 0, 1, 1},
    {"logits, bf16", 384, 50257, 768, 0, 1, 0, 1},
};

static void ours(tg_backend *be, const shape *s, float *c, const float *a, const float *b) {
    be->ops->matmul(be, c, a, b, s->M, s->N, s->K, s->ta, s->tb, s->accumulate, s->rounded);
}

static void library(tg_backend *be, const shape *s, float *c, const float *a, const float *b) {
    (void)be;
    cblas_sgemm(CblasRowMajor, s->ta ? CblasTrans : CblasNoTrans, s->tb ? CblasTrans : CblasNoTrans,
                s->M, s->N, s->K, 1, a, s->ta ? s->M : s->K, b, s->tb ? s->K : s->N,
                s->accumulate ? 1 : 0, c, s->N);
}

/* oneDNN's product of row-major matrices; NULL: not installed. */
typedef int onednn_sgemm(char ta, char tb, int64_t M, int64_t N, int64_t K, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                         float *c, int64_t ldc);
static onednn_sgemm *sgemm;

/* Its threads are OpenMP's, which reads their number when it is loaded. The library stays until the end of the process. */
static void find_onednn(int threads) {
    static const char *const names[] = {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so"};
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    setenv("OMP_NUM_THREADS", count, 1);
    for (int i = 0; i < 3 && !sgemm; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL), *f = NULL;
        if (library) f = dlsym(library, "dnnl_sgemm");
        memcpy(&sgemm, &f, sizeof sgemm);
    }
    if (!sgemm) printf("oneDNN is not installed (Debian: libdnnl-dev): its column is empty\n");
}

static void onednn(tg_backend *be, const shape *s, float *c, const float *a, const float *b) {
    (void)be;
    sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->M, s->N, s->K, 1, a, s->ta ? s->M : s->K, b,
          s->tb ? s->K : s->N, s->accumulate ? 1 : 0, c, s->N);
}

/* With one thread, the time that it had a CPU: other programs then hardly disturb the figure. */
static double now(const tg_backend *be) {
    struct timespec t;
    if (tg_team_size(be->team) > 1 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t))
        return tg_clock_seconds();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several runs: the least disturbed one. */
static double
best_gflops(void (*run)(tg_backend *, const shape *, float *, const float *, const float *),
            tg_backend *be, const shape *s, float *c, const float *a, const float *b) {
    double best = 1e9, start = tg_clock_seconds();
    const int least = tg_bench_quick() ? 1 : 4;
    const double enough = tg_bench_quick() ? 0 : 0.3;
    for (int rep = 0; rep < 100 && (rep < least || tg_clock_seconds() - start < enough); rep++) {
        double t = now(be);
        run(be, s, c, a, b);
        t = now(be) - t;
        if (t < best) best = t;
    }
    return 2e-9 * s->M * s->N * s->K / best;
}

static void report(const shape *s, double gflops, const char *who) {
    const double flops = 2.0 * s->M * s->N * s->K;
    tg_bench_line(&(tg_bench_result){
        .name = s->what, .seconds = flops / gflops * 1e-9, .flops = flops, .who = who});
}

int main(int argc, char **argv) {
    int64_t threads = 0;
    tg_backend *be;
    tg_error err;
    if (argc > 1 && (!tg_parse_i64(argv[1], &threads) || threads < 0 || threads > 1024)) {
        fprintf(stderr, "usage: bench_gemm [THREADS]\n");
        return 64;
    }
    if (tg_backend_open(&be, "cpu", (int)threads, &err) != TG_OK) {
        fprintf(stderr, "bench_gemm: %s\n", err.msg);
        return tg_status_exit_code(err.status);
    }
    const char *path = getenv("TEXTGEN_BENCH_JSON");
    FILE *json = path ? fopen(path, "a") : NULL;
    const int n = tg_team_size(be->team);
    find_onednn(n);
    printf("%-24s %24s %12s %12s %12s   GFLOP/s, %d threads\n", "matrix product", "M x N x K",
           "ours", "OpenBLAS", "oneDNN", n);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        size_t na = (size_t)s->M * (size_t)s->K, nb = (size_t)s->K * (size_t)s->N,
               nc = (size_t)s->M * (size_t)s->N;
        float *a = tg_backend_alloc(be, na * 4, &err), *b = tg_backend_alloc(be, nb * 4, &err);
        float *c = tg_backend_alloc(be, nc * 4, &err);
        if (!a || !b || !c) {
            fprintf(stderr, "bench_gemm: %s\n", err.msg);
            return 71;
        }
        be->ops->fill(be, a, 0.01f, na);
        be->ops->fill(be, b, 0.01f, nb);
        be->ops->fill(be, c, 0, nc);
        double x = best_gflops(ours, be, s, c, a, b);
        openblas_set_num_threads(n);
        double y = best_gflops(library, be, s, c, a, b);
        openblas_set_num_threads(1);
        double z = sgemm ? best_gflops(onednn, be, s, c, a, b) : 0;
        printf("%-24s %9d x%6d x%5d%s %12.1f %12.1f", s->what, s->M, s->N, s->K, s->ta ? "'" : " ",
               x, y);
        if (z > 0)
            printf(" %12.1f\n", z);
        else
            printf(" %12s\n", "-");
        if (strchr(s->what, '/')) { /* the peers have it too */
            report(s, x, "textgen");
            if (!s->rounded) report(s, y, "OpenBLAS"); /* theirs are f32, measured above */
            if (!s->rounded && z > 0) report(s, z, "oneDNN");
        }
        fflush(stdout);
        if (json)
            fprintf(json,
                    "{\"bench\":\"gemm\",\"case\":\"%s\",\"M\":%d,\"N\":%d,\"K\":%d,\"threads\":%d,"
                    "\"gflops\":%.4g,\"openblas_gflops\":%.4g,\"onednn_gflops\":%.4g}\n",
                    s->what, s->M, s->N, s->K, n, x, y, z);
        tg_backend_free(be, a);
        tg_backend_free(be, b);
        tg_backend_free(be, c);
    }
    if (json) fclose(json);
    tg_backend_close(&be);
    return 0;
}
