/* tg-ops: compare, gradient-check and measure every op of every backend. */
#include "tests/ops/device.h"

#include "common/base/check.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

static const ops_suite *const suites[] = {
    &ops_suite_matmul,    &ops_suite_layernorm, &ops_suite_embed, &ops_suite_elementwise,
    &ops_suite_attention, &ops_suite_head,      &ops_suite_adamw, &ops_suite_activation,
    &ops_suite_rmsnorm,   &ops_suite_rope,      &ops_suite_optim, &ops_suite_relative,
    &ops_suite_linear,
};

static const char help[] =
    "usage: tg-ops MODE [-o OP] [-b BACKEND] [-t THREADS] [-v] [--json FILE]\n"
    "\n"
    "  test      each backend against ref, and against itself with 1, 2 and 3 threads\n"
    "  grad      backward ops against central differences of the forward ops\n"
    "  perf      speed beside the measured limits of this machine\n"
    "  limits    what this machine can do, with 1 thread and with all\n"
    "  selftest  a deliberately wrong op must be found by both checks\n"
    "  list      backends and suites\n"
    "\n"
    "  -o OP         only ops whose name contains OP\n"
    "  -b BACKEND    only this backend (default: all but ref)\n"
    "  -t THREADS    for perf (default: one per CPU)\n"
    "  -v            test: how much of its tolerance each output used\n"
    "  --json FILE   perf: also one JSON object a line\n"
    "\n"
    "examples:\n"
    "  tg-ops test -o layernorm\n"
    "  TEXTGEN_CPU_ISA=avx2 tg-ops test -b cpu      the kernels of another instruction set\n"
    "  tg-ops perf -o matmul -t 1\n";

static int usage(const char *what) {
    fprintf(stderr, "tg-ops: %s; try tg-ops --help\n", what);
    return 64;
}

static bool open_subjects(ops_ctx *c, int threads) {
    c->ref = ops_open_backend("ref", 1);
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++) {
        if (c->backend ? strcmp(c->backend, (*b)->name) : !strcmp((*b)->name, "ref")) continue;
        TG_ASSERT(c->n_subjects < (int)TG_COUNT_OF(c->subject));
        c->subject[c->n_subjects] = ops_open_backend((*b)->name, threads);
        if (!c->subject[c->n_subjects++]) return false;
    }
    return c->ref != NULL;
}

static void close_subjects(ops_ctx *c) {
    for (int i = 0; i < c->n_subjects; i++) tg_backend_close(&c->subject[i]);
    tg_backend_close(&c->ref);
}

static int finish(ops_ctx *c) {
    close_subjects(c);
    if (c->passed + c->failed == 0) return usage("no op or backend of that name");
    printf("%d passed, %d failed\n", c->passed, c->failed);
    return c->failed > 0;
}

static int run_checks(ops_ctx *c, bool grad) {
    for (size_t i = 0; i < TG_COUNT_OF(suites); i++) {
        if (grad)
            suites[i]->grad(c);
        else
            suites[i]->test(c);
    }
    if (!c->only_op && c->n_subjects) { /* the checks above mean something only if they can fail */
        if (ops_selftest(c))
            c->passed++;
        else
            c->failed++;
    }
    return finish(c);
}

static int run_selftest(ops_ctx *c) {
    if (ops_selftest(c))
        c->passed++;
    else
        c->failed++;
    return finish(c);
}

static void show_limit(ops_ctx *c, const char *isa, int n) {
    double flops = ops_measure_flops(isa, n);
    printf("limits, %d threads: %.1f GFLOP/s (%s multiply-add), memory %.1f GB/s (y += a x), %.1f "
           "(read)\n",
           n, flops * 1e-9, isa, c->limit_bytes.update * 1e-9, c->limit_bytes.read * 1e-9);
    if (!strcmp(isa, ops_isa_chosen())) c->limit_flops = flops;
    if (c->json)
        fprintf(c->json,
                "{\"bench\":\"limits\",\"threads\":%d,\"isa\":\"%s\",\"gflops\":%.4g,\"gb_per_s\":"
                "%.4g,\"read_gb_per_s\":%.4g}\n",
                n, isa, flops * 1e-9, c->limit_bytes.update * 1e-9, c->limit_bytes.read * 1e-9);
}

static int run_limits(ops_ctx *c) {
    int n = c->n_subjects ? tg_team_size(c->subject[0]->team) : 1;
    for (int threads = 1; threads <= n; threads += n > 1 ? n - 1 : 1) {
        c->limit_bytes = ops_measure_memory(threads);
        for (int i = 0; ops_isa(i); i++) show_limit(c, ops_isa(i), threads);
    }
    if (c->json) fclose(c->json);
    close_subjects(c);
    return 0;
}

static int run_perf(ops_ctx *c) {
    int n = c->n_subjects ? tg_team_size(c->subject[0]->team) : 1;
    c->limit_bytes = ops_measure_memory(n);
    show_limit(c, ops_isa_chosen(), n);
    for (size_t i = 0; i < TG_COUNT_OF(suites); i++) suites[i]->perf(c);
    if (c->json) fclose(c->json);
    close_subjects(c);
    return 0;
}

static int list(void) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++)
        printf("backend %-10s %s\n", (*b)->name, (*b)->summary);
    for (size_t i = 0; i < TG_COUNT_OF(suites); i++) printf("suite   %s\n", suites[i]->name);
    return 0;
}

int main(int argc, char **argv) {
    ops_ctx c = {0};
    const char *mode = NULL, *json = NULL;
    int64_t threads = 0;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return fputs(help, stdout) < 0;
        else if (!strcmp(argv[i], "-o") && more)
            c.only_op = argv[++i];
        else if (!strcmp(argv[i], "-b") && more)
            c.backend = argv[++i];
        else if (!strcmp(argv[i], "-v"))
            c.verbose = true;
        else if (!strcmp(argv[i], "--json") && more)
            json = argv[++i];
        else if (!strcmp(argv[i], "-t") && more && tg_parse_i64(argv[i + 1], &threads) &&
                 threads >= 0 && threads < 1024)
            i++;
        else if (!mode && argv[i][0] != '-')
            mode = argv[i];
        else
            return usage("unknown argument");
    }
    if (!mode) return usage("no mode given");
    if (!strcmp(mode, "list")) return list();
    bool limits = !strcmp(mode, "limits"), perf = limits || !strcmp(mode, "perf");
    if (!perf && strcmp(mode, "test") && strcmp(mode, "grad") && strcmp(mode, "selftest"))
        return usage("unknown mode");
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!open_subjects(&c, perf ? (int)threads : 1)) return 70;
    if (json && !(c.json = fopen(json, "w"))) return usage("cannot write the JSON file");
    if (limits) return run_limits(&c);
    if (perf) return run_perf(&c);
    if (!strcmp(mode, "selftest")) return run_selftest(&c);
    return run_checks(&c, !strcmp(mode, "grad"));
}
