/* The conjugate gradient method (Hestenes & Stiefel 1952) for A x = b with A symmetric and positive, known by its products. */
#ifndef TG_RL_CG_H
#define TG_RL_CG_H

#include "common/base/status.h"

#include <stddef.h>

/* out (n) = A v. */
typedef tg_status tg_matvec(void *arg, const float *v, float *out, tg_error *err);

typedef struct tg_cg {
    size_t n;
    int max_steps;
    double tolerance; /* on the squared residual */
    tg_matvec *product;
    void *arg;
    float *work; /* (3 n) */
} tg_cg;

double tg_vec_dot(const float *a, const float *b, size_t n); /* summed in double */
/* x (n) is where it starts, and the solution. */
tg_status tg_cg_solve(const tg_cg *s, float *x, const float *b, tg_error *err) TG_MUST_CHECK;

#endif
