/* The op harness: an op, its buffers and how it is called make a problem; the harness compares
 * backends on it, checks gradients by finite differences, or measures its speed.
 *
 *     ops_problem p;
 *     ops_begin(&p, c, "gelu_forward", run_gelu_forward, "n=%d", n);
 *     ops_in(&p, "x", n, 3);                 // random in [-3, 3]
 *     ops_out(&p, "y", n, 1e-6);             // starts random too: catches what is not written
 *     ops_compare(c, &p);                    // frees the buffers
 */
#ifndef TG_TESTS_OPS_H
#define TG_TESTS_OPS_H

#include "common/base/rng.h"
#include "common/nn/backend.h"

#include <stdbool.h>
#include <stdio.h>

enum { OPS_BUFS = 14, OPS_DIMS = 8 };

typedef struct ops_buf {
    const char *name;
    float *f;
    int32_t *i; /* one of f and i is set, or neither: passed as NULL */
    size_t n;
    bool out;
    bool overwrites; /* an output that does not add to what was there: for gradcheck */
    double tol;      /* |x - ref| <= tol (1 + |ref|) */
} ops_buf;

typedef struct ops_problem ops_problem;
typedef void ops_run(tg_backend *be, void *const *b, const ops_problem *p);

struct ops_problem {
    const char *op;
    char label[128];
    ops_run *run;
    int n;
    ops_buf buf[OPS_BUFS];
    int d[OPS_DIMS];     /* shapes, for run */
    double x[2];         /* further arguments */
    double flops, bytes; /* of one run, for perf */
    tg_rng rng;
};

/* Bytes a second: y += a x, counted as two reads and a write; reading alone. */
typedef struct tg_op_memory {
    double update, read;
} tg_op_memory;

/* What to run and the tally. */
typedef struct ops_ctx {
    const char *only_op, *backend; /* filters; NULL: all */
    int threads;                   /* perf; 0: all */
    int passed, failed;
    bool quiet, verbose;
    uint64_t cases;
    tg_backend *ref;
    tg_backend *subject[8]; /* backends under test */
    int n_subjects;
    FILE *json;
    double limit_flops; /* per second, at this number of threads */
    tg_op_memory limit_bytes;
} ops_ctx;

typedef struct ops_suite {
    const char *name;
    void (*test)(ops_ctx *c);
    void (*grad)(ops_ctx *c);
    void (*perf)(ops_ctx *c);
} ops_suite;

extern const ops_suite ops_suite_matmul, ops_suite_linear, ops_suite_layernorm, ops_suite_embed,
    ops_suite_elementwise, ops_suite_attention, ops_suite_head, ops_suite_adamw,
    ops_suite_activation, ops_suite_rmsnorm, ops_suite_rope, ops_suite_optim, ops_suite_relative;

/* False: filtered out by -o. */
bool ops_wanted(const ops_ctx *c, const char *op);

void ops_begin(ops_problem *p, ops_ctx *c, const char *op, ops_run *run, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
float *ops_in(ops_problem *p, const char *name, size_t n, double scale);
float *ops_out(ops_problem *p, const char *name, size_t n, double tol);
float *ops_out_over(ops_problem *p, const char *name, size_t n, double tol);
int32_t *ops_ints(ops_problem *p, const char *name, size_t n, int32_t below);
void ops_null(ops_problem *p, const char *name);
/* Offsets of sequences of these lengths. */
int32_t *ops_offsets(ops_problem *p, const int *lengths, int n_seqs);
void ops_end(ops_problem *p);

/* Runs twice on the same buffers with 1, 2 and 3 threads, compares with ref, and the thread counts
 * bit by bit. */
void ops_compare(ops_ctx *c, ops_problem *p);

/* A backward op against differences of its forward op. L = sum of grad_out * output over the
 * forward outputs. */
typedef struct ops_grad {
    ops_problem *forward, *backward;
    int n_wrt;
    struct {
        const char *input;    /* of forward: perturbed */
        const char *gradient; /* of backward: checked */
    } wrt[4];
    int n_outs;
    struct {
        const char *output;   /* of forward */
        const char *grad_out; /* of backward: random, given */
    } outs[3];
    double tol;
} ops_grad;
void ops_gradcheck(ops_ctx *c, ops_grad *g);

/* Copies forward's buffers that backward has under the same name; runs forward first so that its
 * outputs are there. */
void ops_share(ops_problem *forward, ops_problem *backward);

void ops_perf(ops_ctx *c, ops_problem *p);
/* Measured on n threads. */
double ops_measure_flops(const char *isa, int threads);
tg_op_memory ops_measure_memory(int threads);
const char *ops_isa(int i); /* the instruction sets with a limit of their own; NULL: no more */
const char *ops_isa_chosen(void); /* what f32 runs on: $TEXTGEN_CPU_ISA, else the best */

/* A wrong op must be found by compare and by gradcheck; returns whether both did. */
bool ops_selftest(ops_ctx *c);

ops_buf *ops_find(ops_problem *p, const char *name);

#endif
