/* A backend against ref, and against itself with other numbers of threads. */
#include "tests/ops/device.h"

#include "common/base/alloc.h"

#include <math.h>
#include <string.h>

enum { RUNS = 2 }; /* on the same buffers: accumulation is seen */

/* The largest error relative to its tolerance; NaN or infinity where ref has none counts as
 * infinite. */
static double worst(const float *got, const float *want, size_t n, double tol, size_t *where) {
    double top = 0;
    for (size_t i = 0; i < n; i++) {
        double w = (double)want[i], e = fabs((double)got[i] - w) / (tol * (1 + fabs(w)));
        if (!isfinite(e)) e = (double)INFINITY;
        if (e > top) top = e, *where = i;
    }
    return top;
}

static bool outputs_agree(ops_device *got, float *const *want, bool bits, const char *what,
                          const ops_ctx *c) {
    const bool quiet = c->quiet, verbose = c->verbose;
    bool ok = true;
    for (int i = 0; i < got->p->n; i++) {
        const ops_buf *b = &got->p->buf[i];
        if (!b->f) continue;
        /* Inputs must come back unchanged. */
        const float *expected = b->out ? want[i] : b->f;
        float *values = ops_device_get(got, i);
        size_t at = 0;
        bool same = !memcmp(values, expected, b->n * sizeof *values);
        double e = same || bits || !b->out ? 0 : worst(values, expected, b->n, b->tol, &at);
        if (!same && (bits || !b->out || e > 1)) {
            ok = false;
            while (bits && at < b->n && values[at] == expected[at]) at++;
            if (!quiet && at < b->n)
                printf("  %s %s, %s: %s[%zu] is %.9g, expected %.9g (%.3g x tolerance %g)\n",
                       got->p->op, got->p->label, what, b->name, at, (double)values[at],
                       (double)expected[at], e, b->tol);
        }
        if (verbose && b->out && !bits)
            printf("    %s %s %s: %.3g of tolerance %g\n", got->p->op, got->p->label, b->name, e,
                   b->tol);
        tg_free(values);
    }
    return ok;
}

static void take(ops_device *d, float **out) {
    for (int i = 0; i < d->p->n; i++) out[i] = d->p->buf[i].out ? ops_device_get(d, i) : NULL;
}

static void drop(float **out, int n) {
    for (int i = 0; i < n; i++) tg_free(out[i]);
}

static void tally(ops_ctx *c, const ops_problem *p, const char *backend, bool ok) {
    if (ok)
        c->passed++;
    else
        c->failed++;
    if (!ok && !c->quiet) printf("not ok %s %s (%s)\n", p->op, p->label, backend);
}

/* The same backend with other numbers of threads must give the same bits. */
static bool threads_agree(ops_ctx *c, const ops_problem *p, tg_backend *be, float *const *first) {
    static const int counts[] = {2, 3};
    bool ok = true;
    for (int i = 0; i < 2 && be->vtable->threaded; i++) {
        tg_backend *other = ops_open_backend(be->vtable->name, counts[i]);
        if (!other) return false;
        const tg_ops *ops = other->ops;
        other->ops = be->ops;
        ops_device d;
        ops_device_open(&d, other, p);
        ops_device_run(&d, RUNS);
        ok = outputs_agree(&d, first, true, "bits differ with more threads", c) && ok;
        ops_device_close(&d);
        other->ops = ops;
        tg_backend_close(&other);
    }
    return ok;
}

void ops_compare(ops_ctx *c, ops_problem *p) {
    float *want[OPS_BUFS] = {0};
    ops_device d;
    ops_device_open(&d, c->ref, p);
    ops_device_run(&d, RUNS);
    take(&d, want);
    ops_device_close(&d);
    for (int s = 0; s < c->n_subjects; s++) {
        float *got[OPS_BUFS] = {0};
        ops_device_open(&d, c->subject[s], p);
        ops_device_run(&d, RUNS);
        bool ok = outputs_agree(&d, want, false, c->subject[s]->vtable->name, c);
        take(&d, got);
        ops_device_close(&d);
        ok = threads_agree(c, p, c->subject[s], got) && ok;
        tally(c, p, c->subject[s]->vtable->name, ok);
        drop(got, OPS_BUFS);
    }
    drop(want, OPS_BUFS);
    ops_end(p);
}
