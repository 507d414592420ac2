#include "learner/policy/sample.h"

#include "common/base/check.h"
#include "learner/policy/mask.h"
#include "learner/policy/row_math.h"

#include <math.h>
#include <string.h>

static tg_status forbidden(const tg_gen_context *c, const tg_sample_mask *mask, tg_error *err) {
    return tg_fail(err, TG_DATA,
                   "every token is forbidden at token %d, or a penalty made one infinitely good: "
                   "%s",
                   c->n, mask ? TG_MASK_ADVICE : "generation_kwargs forbid too many");
}

/* The draw from w->e, whose sum is given, of candidates with these scores and this largest score. */
static void draw(const float *score, const int32_t *id, int n, double sum, float top, double u,
                 const tg_gen_space *w, tg_draw *out) {
    int i = tg_row_find(w->e, w->blocks, n, u * sum);
    out->token = id ? id[i] : i;
    out->sample_logp = (float)((double)score[i] - (double)top - log(sum));
}

static void keep_left(const tg_candidates *c, uint32_t *left, int V) {
    memset(left, 0, (size_t)(V + 31) / 32 * sizeof *left);
    for (int i = 0; i < c->n; i++) {
        int t = c->id ? c->id[i] : i;
        if (c->score[i] > -INFINITY) left[t / 32] |= 1u << (t % 32);
    }
}

/* What is drawn from when the distribution is not the model's own. */
static bool draw_shaped(const tg_gen_settings *s, const float *scores, int V,
                        const tg_sample_mask *mask, double u, tg_gen_space *w, tg_draw *out) {
    tg_candidates c;
    tg_warp(s, scores, V, 1, w, &c);
    if (mask && mask->left) keep_left(&c, mask->left, V);
    float top = tg_row_max(c.score, c.n);
    if (!isfinite(top)) return false;
    double sum = tg_row_exp(c.score, c.n, top, w->e, w->blocks);
    draw(c.score, c.id, c.n, sum, top, u, w, out);
    return true;
}

tg_status tg_sample(const tg_gen_settings *s, const tg_gen_context *c, const float *logits, int V,
                    const tg_sample_mask *mask, double u, tg_gen_space *w, tg_draw *out,
                    tg_error *err) {
    float top = tg_row_max(logits, V);
    const float *scores = logits;
    bool broken = !isfinite(top);
    if (broken && !s->remove_invalid_values)
        return tg_fail(
            err, TG_DATA,
            "the model gives no finite distribution at token %d (NaN or infinite logits): did "
            "training diverge? A lower learning rate, or an earlier checkpoint, may help",
            c->n);
    double sum = broken ? 1 : tg_row_exp(logits, V, top, w->e, w->blocks);
    bool processed = tg_processors_any(s) || mask;
    if (processed) {
        memcpy(w->row, logits, (size_t)V * sizeof *logits);
        tg_process(s, c, w->row, V, w->work);
        if (mask) tg_mask_forbid(w->row, mask->allowed, V);
        scores = w->row;
    }
    if (!s->do_sample) {
        float best = processed ? tg_row_max(scores, V) : top;
        if (!(best > -INFINITY)) return forbidden(c, mask, err);
        out->token = tg_row_first(scores, V, best);
        out->sample_logp = 0;
    } else if (processed || tg_warpers_any(s, V)) {
        if (!draw_shaped(s, scores, V, mask, u, w, out)) return forbidden(c, mask, err);
    } else {
        draw(logits, NULL, V, sum, top, u, w, out);
    }
    out->logp = broken ? (float)NAN : (float)((double)logits[out->token] - (double)top - log(sum));
    return TG_OK;
}
