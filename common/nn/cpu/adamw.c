/* AdamW in runs; the constants are rounded from double to f32 where torch rounds them. */
#include "common/nn/cpu/cpu.h"

#include <math.h>

typedef struct adamw_job {
    const tg_cpu_kernels *k;
    float *param, *grad, *m, *v;
    tg_adamw_consts consts;
} adamw_job;

static void adamw_range(void *arg, size_t i, size_t n) {
    const adamw_job *j = arg;
    j->k->adamw(j->param + i, j->grad + i, j->m + i, j->v + i, n, &j->consts);
}

void tg_cpu_adamw(tg_backend *be, float *param, float *grad, float *m, float *v, size_t n,
                  const tg_adamw_step *s) {
    adamw_job j = {.k = be->kernels, .param = param, .grad = grad, .m = m, .v = v};
    j.consts = (tg_adamw_consts){
        .grad_scale = s->grad_scale,
        .decay = (float)(1 - s->lr * s->weight_decay),
        .w1 = (float)(1 - s->beta1),
        .beta2 = (float)s->beta2,
        .w2 = (float)(1 - s->beta2),
        .root2 = (float)sqrt(1 - pow(s->beta2, (double)s->t)),
        .eps = (float)s->eps,
        .step_size = (float)(-s->lr / (1 - pow(s->beta1, (double)s->t))),
    };
    tg_cpu_for(be, n, 16384, adamw_range, &j);
}
