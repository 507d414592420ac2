/* Activation functions, in runs of fixed size. */
#include "common/nn/cpu/cpu.h"

enum { RUN = 16384 };

typedef struct act_job {
    const tg_cpu_kernels *k;
    float *y;
    const float *x, *dy;
    size_t F;
    tg_act kind;
    float cap;
} act_job;

static void forward_run(void *arg, size_t i, size_t n) {
    const act_job *j = arg;
    j->k->act(j->y + i, j->x + i, n, (int)j->kind);
}

static void backward_run(void *arg, size_t i, size_t n) {
    const act_job *j = arg;
    j->k->act_grad(j->y + i, j->dy + i, j->x + i, n, (int)j->kind);
}

static void gated_rows(void *arg, size_t i, size_t n) {
    const act_job *j = arg;
    j->k->gated(j->y + i * j->F, j->x + i * 2 * j->F, n, j->F, (int)j->kind);
}

static void gated_grad_rows(void *arg, size_t i, size_t n) {
    const act_job *j = arg;
    j->k->gated_grad(j->y + i * 2 * j->F, j->dy + i * j->F, j->x + i * 2 * j->F, n, j->F,
                     (int)j->kind);
}

static void softcap_run(void *arg, size_t i, size_t n) {
    const act_job *j = arg;
    j->k->softcap(j->y + i, j->cap, n);
}

void tg_cpu_act_forward(tg_backend *be, float *y, const float *x, size_t n, tg_act kind) {
    tg_cpu_for(be, n, RUN, forward_run, &(act_job){.k = be->kernels, .y = y, .x = x, .kind = kind});
}

void tg_cpu_act_backward(tg_backend *be, float *dx, const float *dy, const float *x, size_t n,
                         tg_act kind) {
    tg_cpu_for(be, n, RUN, backward_run,
               &(act_job){.k = be->kernels, .y = dx, .dy = dy, .x = x, .kind = kind});
}

void tg_cpu_gated_forward(tg_backend *be, float *y, const float *x, int N, int F, tg_act kind) {
    act_job j = {.k = be->kernels, .y = y, .x = x, .F = (size_t)F, .kind = kind};
    if (N > 0 && F > 0) tg_cpu_for(be, (size_t)N, tg_cpu_grain(RUN, F), gated_rows, &j);
}

void tg_cpu_gated_backward(tg_backend *be, float *dx, const float *dy, const float *x, int N, int F,
                           tg_act kind) {
    act_job j = {.k = be->kernels, .y = dx, .dy = dy, .x = x, .F = (size_t)F, .kind = kind};
    if (N > 0 && F > 0) tg_cpu_for(be, (size_t)N, tg_cpu_grain(RUN, F), gated_grad_rows, &j);
}

void tg_cpu_softcap(tg_backend *be, float *y, float cap, size_t n) {
    tg_cpu_for(be, n, RUN, softcap_run, &(act_job){.k = be->kernels, .y = y, .cap = cap});
}
