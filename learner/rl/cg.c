/* See cg.h. Vectors are f32, sums double: the iterates are those of any careful f32 implementation until rounding parts them. */
#include "learner/rl/cg.h"

#include <string.h>

double tg_vec_dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static void axpy(float *y, double a, const float *x, size_t n) { /* y += a x */
    for (size_t i = 0; i < n; i++) y[i] += (float)(a * (double)x[i]);
}

tg_status tg_cg_solve(const tg_cg *s, float *x, const float *b, tg_error *err) {
    const size_t n = s->n;
    float *r = s->work, *p = r + n, *Ap = p + n;
    tg_status st = s->product(s->arg, x, Ap, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < n; i++) p[i] = r[i] = b[i] - Ap[i];
    double rr = tg_vec_dot(r, r, n);
    for (int k = 0; k < s->max_steps && rr >= s->tolerance; k++) {
        st = s->product(s->arg, p, Ap, err);
        if (st != TG_OK) return st;
        double alpha = rr / tg_vec_dot(p, Ap, n);
        axpy(x, alpha, p, n);
        axpy(r, -alpha, Ap, n);
        double next = tg_vec_dot(r, r, n), beta = next / rr;
        for (size_t i = 0; i < n; i++) p[i] = r[i] + (float)(beta * (double)p[i]);
        rr = next;
    }
    return TG_OK;
}
