/* One step: its texts are packed, without padding, and cut into passes that fit.
 *
 * The loss of a step is the mean over all predicted tokens of its batch. */
#include "learner/train/supervised_impl.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#include <inttypes.h>
#include <math.h>

static int64_t count_labels(const tg_supervised_run *s, const tg_text_range *r) {
    int64_t n = 0;
    for (int64_t i = r->first; i < r->end; i++) {
        int64_t text = tg_text_order_at(&s->order, r, i);
        for (int64_t t = s->corpus.start[text] + 1; t < s->corpus.start[text + 1]; t++)
            n += s->corpus.tokens[t] != s->ignored;
    }
    return n;
}

/* Makes the pass, or a larger one: steps that were not looked at may need it. */
static tg_status open_pass(tg_supervised_run *s, const tg_batch *b, tg_error *err) {
    tg_pass_caps *c = &s->caps;
    if (b->n_tokens > c->tokens || b->n_seqs > c->seqs || b->n_src > c->src) {
        tg_pass_destroy(&s->pass);
        c->tokens = c->actions = TG_MAX(c->tokens, b->n_tokens);
        c->seqs = TG_MAX(c->seqs, b->n_seqs);
        c->src = TG_MAX(c->src, b->n_src);
    }
    unsigned mode = s->run->settings->recompute ? TG_PASS_RECOMPUTE : TG_PASS_TRAIN;
    return s->pass ? TG_OK : tg_pass_create(&s->pass, s->model, *c, mode, err);
}

/* Forward and backward of what is packed; adds the negative log-probabilities to *loss. */
static tg_status flush(tg_supervised_run *s, int64_t labels, double *loss, tg_error *err) {
    const tg_batch *b = &s->packer.batch;
    if (b->n_seqs == 0) return TG_OK;
    tg_status st = open_pass(s, b, err);
    if (st == TG_OK && b->n_actions) {
        tg_batch batch = *b;
        batch.actions_only = true;
        st = tg_pass_forward(s->pass, &batch, (tg_pass_out){.logp = s->logp}, err);
        for (int i = 0; st == TG_OK && i < b->n_actions; i++) {
            *loss -= (double)s->logp[i];
            s->dlogp[i] = (float)(-1.0 / (double)labels);
        }
        if (st == TG_OK) st = tg_pass_backward(s->pass, s->dlogp, NULL, NULL, err);
    }
    s->tokens += b->n_tokens;
    tg_packer_reset(&s->packer);
    return st;
}

/* The optimizer's step; or, when something is not finite, none: then the step is counted and its loss is in no mean. */
static void apply(tg_supervised_run *s, double loss) {
    double norm = isfinite(loss) ? tg_optim_grad_norm(s->optim) : (double)NAN;
    if (!isfinite(norm)) {
        tg_optim_clear(s->optim);
        s->state.skipped++;
        tg_log_warn("train", "step %" PRId64 ": the %s is not finite; the step is left out",
                    s->state.iteration + 1, isfinite(loss) ? "gradient" : "loss");
        return;
    }
    double most = s->args->max_grad_norm, scale = most > 0 ? most / (norm + 1e-6) : 1;
    tg_optim_step(s->optim, tg_schedule_rate(&s->schedule, s->state.iteration),
                  (float)fmin(1, scale));
    s->state.loss_sum += loss;
    s->state.loss_n++;
}

tg_status tg_supervised_step(tg_supervised_run *s, tg_error *err) {
    double start = tg_clock_seconds(), loss = 0;
    tg_text_range r = tg_text_order_step(&s->order, s->state.iteration);
    int64_t labels = count_labels(s, &r);
    tg_status st = TG_OK;
    for (int64_t i = r.first; st == TG_OK && i < r.end; i++) {
        int64_t text = tg_text_order_at(&s->order, &r, i);
        if (tg_packer_add(&s->packer, &s->corpus, text, s->ignored)) continue;
        st = flush(s, labels, &loss, err);
        bool fits = tg_packer_add(&s->packer, &s->corpus, text, s->ignored);
        TG_ASSERT(fits); /* one text is never longer than a pass */
    }
    if (st == TG_OK) st = flush(s, labels, &loss, err);
    if (st != TG_OK) return st;
    apply(s, labels ? loss / (double)labels : 0);
    s->state.iteration++;
    s->state.evaluated = false;
    s->done++;
    s->seconds += tg_clock_seconds() - start;
    return TG_OK;
}
