/* The language-model head, naive: a logit is computed again wherever it is needed. */
#include "common/nn/ref/ref.h"

#include <math.h>

static double product(float x, float y, tg_head_extra e) {
    return e.rounded ? tg_ref_product(x, y) : (double)x * (double)y;
}

/* Of token j in row i; x is that row. */
static double logit(const float *x, const float *w, int C, int V, int i, int j, tg_head_extra e) {
    if (e.mask && !(e.mask[(size_t)i * (size_t)e.mask_words + (size_t)j / 32] >> (j % 32) & 1))
        return (double)TG_HEAD_MASKED;
    double sum = e.bias ? (double)e.bias[j] : 0;
    const tg_weight plain = {w, TG_WEIGHT_PLAIN, true, false};
    const tg_weight from = e.packed.form == TG_WEIGHT_PLAIN ? plain : e.packed;
    for (int c = 0; c < C; c++) sum += product(x[c], tg_ref_weight_at(from, j, c, V, C), e);
    return e.softcap > 0 ? (double)e.softcap * tanh(sum / (double)e.softcap) : sum;
}

void tg_ref_head_forward(tg_backend *be, float *logp, float *entropy, float *lse, const float *x,
                         const float *w, const int32_t *tokens, int n, int C, int V,
                         tg_head_extra extra) {
    (void)be;
    for (int i = 0; i < n; i++) {
        const float *xi = x + (size_t)i * C;
        double top = -(double)INFINITY, sum = 0, h = 0;
        for (int j = 0; j < V; j++) top = fmax(top, logit(xi, w, C, V, i, j, extra));
        for (int j = 0; j < V; j++) sum += exp(logit(xi, w, C, V, i, j, extra) - top);
        /* cppcheck-suppress invalidFunctionArg ; V > 0 */
        double l = top + log(sum);
        for (int j = 0; j < V; j++) {
            double lp = logit(xi, w, C, V, i, j, extra) - l;
            h -= exp(lp) * lp;
        }
        for (int j = 0; extra.kept && j < V; j++)
            extra.kept[(size_t)i * (size_t)V + (size_t)j] = (float)logit(xi, w, C, V, i, j, extra);
        logp[i] = (float)(logit(xi, w, C, V, i, tokens[i], extra) - l);
        entropy[i] = (float)h;
        lse[i] = (float)l;
    }
}

void tg_ref_head_backward(tg_backend *be, float *dx, float *dw, const float *dlogp,
                          const float *dentropy, const float *x, const float *w,
                          const int32_t *tokens, const float *lse, const float *entropy, int n,
                          int C, int V, tg_head_extra extra) {
    (void)be;
    for (int i = 0; i < n; i++) {
        const float *xi = x + (size_t)i * C;
        float *dxi = dx + (size_t)i * C;
        for (int c = 0; c < C; c++) dxi[c] = 0;
        for (int j = 0; j < V; j++) {
            double l = extra.kept ? (double)extra.kept[(size_t)i * (size_t)V + (size_t)j]
                                  : (double)(float)logit(xi, w, C, V, i, j, extra);
            double lp = l - (double)lse[i], p = exp(lp);
            double d = (double)dlogp[i] * ((j == tokens[i]) - p) -
                       (double)dentropy[i] * p * (lp + (double)entropy[i]);
            if (extra.softcap > 0) {
                double t = l / (double)extra.softcap;
                d *= 1 - t * t;
            }
            if (extra.dbias) extra.dbias[j] += (float)d;
            for (int c = 0; c < C; c++) {
                dxi[c] += (float)product((float)d, w[(size_t)j * C + c], extra);
                if (dw) dw[(size_t)j * C + c] += (float)product((float)d, xi[c], extra);
            }
        }
    }
}
