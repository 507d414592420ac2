/* One AdamW step (Loshchilov & Hutter 2019, algorithm 2), in the order of operations of
 * torch.optim.AdamW. */
#include "common/nn/ref/ref.h"

#include <math.h>

void tg_ref_adamw(tg_backend *be, float *param, float *grad, float *m, float *v, size_t n,
                  const tg_adamw_step *s) {
    (void)be;
    const float decay = (float)(1 - s->lr * s->weight_decay), eps = (float)s->eps;
    const float w1 = (float)(1 - s->beta1), beta2 = (float)s->beta2, w2 = (float)(1 - s->beta2);
    const float step_size = (float)(-s->lr / (1 - pow(s->beta1, (double)s->t)));
    const float root2 = (float)sqrt(1 - pow(s->beta2, (double)s->t));
    for (size_t i = 0; i < n; i++) {
        float g = grad[i] * s->grad_scale;
        float p = param[i] * decay;
        m[i] = w1 < 0.5f ? fmaf(w1, g - m[i], m[i]) : fmaf(w1 - 1, g - m[i], g); /* torch.lerp */
        v[i] = fmaf(w2 * g, g, v[i] * beta2); /* mul_, addcmul_ */
        float denom = sqrtf(v[i]) / root2 + eps;
        param[i] = p + step_size * m[i] / denom;
        grad[i] = 0;
    }
}
