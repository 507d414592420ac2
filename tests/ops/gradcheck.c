/* Backward ops against central differences of their forward ops. Forward runs on ref (sums in
 * double); backward on the backend under test. Differences are taken of L = sum grad_out * output,
 * computed in double from the f32 outputs. */
#include "tests/ops/device.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <string.h>

static int index_of(const ops_problem *p, const char *name) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->buf[i].name, name)) return i;
    TG_UNREACHABLE();
}

void ops_share(ops_problem *forward, ops_problem *backward) {
    tg_backend *ref = ops_open_backend("ref", 1);
    TG_ASSERT(ref);
    ops_device d;
    ops_device_open(&d, ref, forward);
    ops_device_run(&d, 1);
    for (int i = 0; i < forward->n; i++) {
        ops_buf *from = &forward->buf[i], *to = ops_find(backward, from->name);
        if (!to || !(from->f || from->i)) continue;
        TG_ASSERT(to->n == from->n);
        if (from->f)
            tg_backend_download(ref, to->f, d.b[i], from->n * sizeof(float));
        else
            memcpy(to->i, from->i, from->n * sizeof *from->i);
    }
    ops_device_close(&d);
    tg_backend_close(&ref);
}

static double loss(ops_device *forward, const ops_grad *g) {
    double sum = 0;
    for (int i = 0; i < g->forward->n; i++) /* ops that work in place start from the same values */
        if (g->forward->buf[i].out) ops_device_set(forward, i, g->forward->buf[i].f);
    ops_device_run(forward, 1);
    for (int o = 0; o < g->n_outs; o++) {
        int i = index_of(g->forward, g->outs[o].output);
        const ops_buf *weight = ops_find(g->backward, g->outs[o].grad_out);
        float *out = ops_device_get(forward, i);
        for (size_t e = 0; e < weight->n; e++) sum += (double)weight->f[e] * (double)out[e];
        tg_free(out);
    }
    return sum;
}

/* Derivatives with respect to forward buffer `in`, one element at a time. */
static double *differences(ops_device *forward, const ops_grad *g, int in) {
    const ops_buf *b = &g->forward->buf[in];
    double *out = tg_alloc_array(b->n, sizeof *out);
    float *x = tg_alloc_array(b->n, sizeof *x);
    TG_ASSERT(out && x);
    memcpy(x, b->f, b->n * sizeof *x);
    for (size_t e = 0; e < b->n; e++) {
        float keep = x[e], h = 1.0f / 256, up = keep + h, down = keep - h;
        x[e] = up;
        ops_device_set(forward, in, x);
        double high = loss(forward, g);
        x[e] = down;
        ops_device_set(forward, in, x);
        out[e] = (high - loss(forward, g)) / ((double)up - (double)down);
        x[e] = keep;
    }
    ops_device_set(forward, in, x);
    tg_free(x);
    return out;
}

/* The gradient buffer starts with random values when the op accumulates: what was there is taken
 * off. */
static bool agree(const ops_grad *g, int wrt, const double *want, const float *got,
                  const float *before, bool accumulates, bool quiet, const char *backend) {
    const ops_buf *b = ops_find(g->backward, g->wrt[wrt].gradient);
    double scale = 0;
    for (size_t e = 0; e < b->n; e++) scale = fmax(scale, fabs(want[e]));
    for (size_t e = 0; e < b->n; e++) {
        double x = (double)got[e] - (accumulates ? (double)before[e] : 0);
        if (fabs(x - want[e]) <= g->tol * (scale + 1e-3)) continue;
        if (!quiet)
            printf("  %s %s (%s): %s[%zu] is %.9g, differences give %.9g (largest %.3g, tolerance "
                   "%g)\n",
                   g->backward->op, g->backward->label, backend, b->name, e, x, want[e], scale,
                   g->tol);
        return false;
    }
    return true;
}

static bool check_backend(ops_ctx *c, tg_backend *be, const ops_grad *g, double *const *want) {
    ops_device d;
    bool ok = true;
    ops_device_open(&d, be, g->backward);
    ops_device_run(&d, 1);
    for (int w = 0; w < g->n_wrt; w++) {
        int i = index_of(g->backward, g->wrt[w].gradient);
        float *got = ops_device_get(&d, i);
        bool accumulates = !g->backward->buf[i].overwrites;
        ok = agree(g, w, want[w], got, g->backward->buf[i].f, accumulates, c->quiet,
                   be->vtable->name) &&
             ok;
        tg_free(got);
    }
    ops_device_close(&d);
    return ok;
}

void ops_gradcheck(ops_ctx *c, ops_grad *g) {
    double *want[4] = {0};
    ops_device forward;
    ops_device_open(&forward, c->ref, g->forward);
    for (int w = 0; w < g->n_wrt; w++)
        want[w] = differences(&forward, g, index_of(g->forward, g->wrt[w].input));
    ops_device_close(&forward);
    for (int s = -1; s < c->n_subjects; s++) {
        tg_backend *be = s < 0 ? c->ref : c->subject[s];
        if (s < 0 && c->backend && strcmp(c->backend, "ref")) continue;
        bool ok = check_backend(c, be, g, want);
        if (ok)
            c->passed++;
        else
            c->failed++;
        if (!ok && !c->quiet)
            printf("not ok %s %s (%s)\n", g->backward->op, g->backward->label, be->vtable->name);
    }
    for (int w = 0; w < 4; w++) tg_free(want[w]);
    ops_end(g->forward);
    ops_end(g->backward);
}
