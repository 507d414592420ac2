/* The equations of loss.h with their derivatives. Sums run in double; nothing here knows a model. */
#include "learner/rl/loss.h"

#include <math.h>

static double clamp(double x, double lo, double hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

/* What all objectives share: the squared value error, the entropy bonus, and how far the policy moved. */
static void add_common(const tg_loss_coefs *c, const tg_loss_rows *rows, int i, double w,
                       tg_loss_terms *terms, float *dentropy, float *dvalue) {
    /* A value outside the clip range has no gradient. */
    double old = (double)rows->value_old[i], v = (double)rows->value[i];
    bool inside = true;
    if (!isnan(c->clip_range_vf)) {
        inside = fabs(v - old) <= c->clip_range_vf;
        v = old + clamp(v - old, -c->clip_range_vf, c->clip_range_vf);
    }
    double miss = v - (double)rows->ret[i];
    dvalue[i] = inside ? (float)(c->vf_coef * 2 * w * miss) : 0.0F;

    double h = (double)rows->entropy[i];
    dentropy[i] = (float)(-c->ent_coef * w);

    double log_ratio = (double)rows->logp[i] - (double)rows->logp_old[i];
    double moved = fabs(exp(log_ratio) - 1);
    terms->value_loss += w * miss * miss;
    terms->entropy_loss -= w * h;
    terms->approx_kl += w * (expm1(log_ratio) - log_ratio);
    if (moved > terms->ratio_error) terms->ratio_error = moved;
    terms->finite =
        terms->finite && isfinite(log_ratio) && isfinite((float)(miss * miss)) && isfinite(h);
}

void tg_ppo_loss(const tg_loss_coefs *c, const tg_loss_rows *rows, int n, int total,
                 tg_loss_terms *terms, float *dlogp, float *dentropy, float *dvalue) {
    const double eps = c->clip_range, w = 1.0 / total;
    for (int i = 0; i < n; i++) {
        /* Eq. 7. Where the clipped product is the smaller one, the gradient is zero. */
        double ratio = exp((double)rows->logp[i] - (double)rows->logp_old[i]);
        double adv = (double)rows->adv[i];
        double plain = ratio * adv, clipped = clamp(ratio, 1 - eps, 1 + eps) * adv;
        double surrogate = plain <= clipped ? plain : clipped;
        dlogp[i] = plain <= clipped ? (float)(-w * adv * ratio) : 0.0F;
        terms->policy_loss -= w * surrogate;
        if (fabs(ratio - 1) > eps) terms->clip_fraction += w;
        add_common(c, rows, i, w, terms, dentropy, dvalue);
        /* What f32 cannot hold counts as not finite: it would become an infinite gradient. */
        terms->finite = terms->finite && isfinite(dlogp[i]) && isfinite((float)surrogate);
    }
}

void tg_a2c_loss(const tg_loss_coefs *c, const tg_loss_rows *rows, int n, int total,
                 tg_loss_terms *terms, float *dlogp, float *dentropy, float *dvalue) {
    const double w = 1.0 / total;
    for (int i = 0; i < n; i++) {
        double adv = (double)rows->adv[i], product = (double)rows->logp[i] * adv;
        dlogp[i] = (float)(-w * adv);
        terms->policy_loss -= w * product;
        add_common(c, rows, i, w, terms, dentropy, dvalue);
        terms->finite = terms->finite && isfinite(dlogp[i]) && isfinite((float)product);
    }
}

double tg_loss_total(const tg_loss_coefs *c, const tg_loss_terms *terms) {
    return terms->policy_loss + c->ent_coef * terms->entropy_loss + c->vf_coef * terms->value_loss;
}

static double mean_of(const float *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i];
    return sum / n;
}

void tg_normalise_advantages(float *out, const float *adv, int n) {
    if (n < 2) {
        if (n == 1) out[0] = adv[0];
        return;
    }
    double mean = mean_of(adv, n), sum = 0;
    for (int i = 0; i < n; i++) sum += ((double)adv[i] - mean) * ((double)adv[i] - mean);
    double scale = 1 / (sqrt(sum / (n - 1)) + 1e-8);
    for (int i = 0; i < n; i++) out[i] = (float)(((double)adv[i] - mean) * scale);
}

double tg_explained_variance(const float *value, const float *ret, int n) {
    double ret_mean = mean_of(ret, n), miss_mean = ret_mean - mean_of(value, n), ret_var = 0,
           miss_var = 0;
    for (int i = 0; i < n; i++) {
        double r = (double)ret[i] - ret_mean, m = (double)ret[i] - (double)value[i] - miss_mean;
        ret_var += r * r;
        miss_var += m * m;
    }
    return ret_var > 0 ? 1 - miss_var / ret_var : (double)NAN;
}
