/* Adam in runs; the constants are rounded from double to f32 where torch rounds them. */
#include "common/nn/cpu/cpu.h"

#include <math.h>

typedef struct adamw_job {
    const tg_cpu_kernels *k;
    float *param, *grad, *m, *v;
    const tg_quant8_state *m8, *v8;
    tg_adamw_consts consts;
} adamw_job;

static tg_adamw_consts constants(const tg_adamw_step *s) {
    return (tg_adamw_consts){
        .grad_scale = s->grad_scale,
        .l2 = s->coupled ? (float)s->weight_decay : 0,
        .decay = s->coupled ? 1 : (float)(1 - s->lr * s->weight_decay),
        .w1 = (float)(1 - s->beta1),
        .beta2 = (float)s->beta2,
        .w2 = (float)(1 - s->beta2),
        .root2 = (float)sqrt(1 - pow(s->beta2, (double)s->t)),
        .eps = (float)s->eps,
        .step_size = (float)(-s->lr / (1 - pow(s->beta1, (double)s->t))),
    };
}

static void adamw_range(void *arg, size_t i, size_t n) {
    const adamw_job *j = arg;
    j->k->adamw(j->param + i, j->grad + i, j->m + i, j->v + i, n, &j->consts);
}

void tg_cpu_adamw(tg_backend *be, float *param, float *grad, float *m, float *v, size_t n,
                  const tg_adamw_step *s) {
    adamw_job j = {be->kernels, param, grad, m, v, .consts = constants(s)};
    tg_cpu_for(be, n, 16384, adamw_range, &j);
}

/* Runs are whole blocks. */
static void adam8_range(void *arg, size_t i, size_t n) {
    const adamw_job *j = arg;
    size_t block = i / TG_QUANT8_BLOCK;
    const tg_quant8_state m = {j->m8->code + i, j->m8->largest + block};
    const tg_quant8_state v = {j->v8->code + i, j->v8->largest + block};
    j->k->adam8(j->param + i, j->grad + i, &m, &v, n, &j->consts);
}

void tg_cpu_adam8(tg_backend *be, float *param, float *grad, const tg_quant8_state *m,
                  const tg_quant8_state *v, size_t n, const tg_adamw_step *s) {
    adamw_job j = {be->kernels, param, grad, .m8 = m, .v8 = v, .consts = constants(s)};
    tg_cpu_for(be, n, 64 * TG_QUANT8_BLOCK, adam8_range, &j);
}
