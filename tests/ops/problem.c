/* Buffers of a problem. */
#include "tests/ops/ops.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <stdarg.h>
#include <string.h>

bool ops_wanted(const ops_ctx *c, const char *op) {
    return !c->only_op || strstr(op, c->only_op);
}

void ops_begin(ops_problem *p, ops_ctx *c, const char *op, ops_run *run, const char *fmt, ...) {
    memset(p, 0, sizeof *p);
    p->op = op;
    p->run = run;
    p->rng = tg_rng_at(7, TG_RNG_TEST, c->cases++, 0);
    va_list args;
    va_start(args, fmt);
    vsnprintf(p->label, sizeof p->label, fmt, args);
    va_end(args);
}

static ops_buf *next(ops_problem *p, const char *name, size_t n) {
    TG_ASSERT(p->n < OPS_BUFS);
    ops_buf *b = &p->buf[p->n++];
    b->name = name;
    b->n = n;
    return b;
}

float *ops_in(ops_problem *p, const char *name, size_t n, double scale) {
    ops_buf *b = next(p, name, n);
    b->f = tg_alloc_array(n, sizeof *b->f);
    TG_ASSERT(b->f);
    for (size_t i = 0; i < n; i++)
        b->f[i] = (float)(scale * ((double)tg_rng_u32(&p->rng) / 2147483648.0 - 1));
    return b->f;
}

float *ops_out(ops_problem *p, const char *name, size_t n, double tol) {
    ops_in(p, name, n, 1);
    ops_buf *b = &p->buf[p->n - 1];
    b->out = true;
    b->tol = tol;
    return b->f;
}

float *ops_out_over(ops_problem *p, const char *name, size_t n, double tol) {
    ops_out(p, name, n, tol);
    p->buf[p->n - 1].overwrites = true;
    return p->buf[p->n - 1].f;
}

int32_t *ops_ints(ops_problem *p, const char *name, size_t n, int32_t below) {
    ops_buf *b = next(p, name, n);
    b->i = tg_alloc_array(n, sizeof *b->i);
    TG_ASSERT(b->i);
    for (size_t i = 0; i < n; i++) b->i[i] = (int32_t)tg_rng_below(&p->rng, (uint64_t)below);
    return b->i;
}

void ops_null(ops_problem *p, const char *name) {
    next(p, name, 0);
}

int32_t *ops_offsets(ops_problem *p, const int *lengths, int n_seqs) {
    int32_t *o = ops_ints(p, "offsets", (size_t)n_seqs + 1, 1);
    for (int s = 0; s < n_seqs; s++) o[s + 1] = o[s] + lengths[s];
    return o;
}

void ops_end(ops_problem *p) {
    for (int i = 0; i < p->n; i++) {
        tg_free(p->buf[i].f);
        tg_free(p->buf[i].i);
    }
    p->n = 0;
}

ops_buf *ops_find(ops_problem *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->buf[i].name, name)) return &p->buf[i];
    return NULL;
}
