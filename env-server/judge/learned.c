/* The probability of a label: RL4LMs's learned reward. Texts that are too long lose their beginning; softmax runs over all labels, whatever
 * problem the classifier was trained for. */
#include "env-server/judge/judgement.h"

#include "common/base/alloc.h"
#include "env-server/judge/judge.h"

#include <math.h>
#include <string.h>

tg_status tg_learned_open(tg_learned *l, const tg_open_context *ctx, const char *owner,
                          const char *model_name, int64_t label_ix, bool with_prompt,
                          tg_error *err) {
    *l = (tg_learned){.with_prompt = with_prompt};
    tg_status st = tg_judge_open(
        &l->judge, ctx,
        (tg_judge_spec){.owner = owner, .name = model_name, .kind = TG_JUDGE_LABELS}, err);
    if (st != TG_OK) return st;
    const int n = tg_judge_arch(l->judge)->n_labels;
    l->label = (size_t)(label_ix < 0 ? label_ix + n : label_ix); /* as Python counts */
    if (label_ix >= -n && label_ix < n) return TG_OK;
    st = tg_fail(err, TG_CONFIG, "%s: label_ix: %s has labels 0 to %d, found %lld", owner,
                 tg_judge_folder(l->judge), n - 1, (long long)label_ix);
    tg_learned_close(l);
    return st;
}

tg_status tg_learned_start(void *learned, const void *options, const tg_open_context *ctx,
                           tg_error *err) {
    const tg_learned_options *o = options;
    return tg_learned_open(learned, ctx, "learned_reward", o->model_name, o->label_ix,
                           o->include_prompt_for_eval, err);
}

void tg_learned_close(void *learned) {
    tg_judge_close(&((tg_learned *)learned)->judge);
}

static double softmax_of(const float *x, size_t n, size_t label) {
    double most = (double)x[0], sum = 0;
    for (size_t i = 1; i < n; i++) most = fmax(most, (double)x[i]);
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return (double)(float)(exp((double)x[label] - most) / sum);
}

/* Prompts and texts one behind the other in `joined`; texts point into it. */
static tg_status join(const tg_metric_item *items, size_t n, tg_buf *joined, tg_text *texts,
                      tg_error *err) {
    for (size_t i = 0; i < n; i++) {
        size_t begin = joined->len;
        tg_buf_puts(joined, items[i].sample ? items[i].sample->prompt_text : "");
        tg_buf_append(joined, items[i].text, items[i].text_len);
        texts[i] = (tg_text){.len = joined->len - begin};
    }
    if (joined->failed) return tg_fail_nomem(err, joined->len);
    for (size_t i = 0, at = 0; i < n; at += texts[i++].len)
        texts[i].s = joined->data ? joined->data + at : "";
    return TG_OK;
}

tg_status tg_learned_values(const void *learned, const tg_metric_item *items, size_t n,
                            double *values, tg_error *err) {
    const tg_learned *l = learned;
    const size_t labels = (size_t)tg_judge_arch(l->judge)->n_labels;
    tg_text *texts = tg_alloc_array(n, sizeof *texts);
    float *logits = tg_alloc_array(n * labels, sizeof *logits);
    tg_buf joined = {0};
    tg_encodings rows = {0};
    tg_status st = texts && logits ? TG_OK : tg_fail_nomem(err, n * labels * sizeof *logits);
    if (st == TG_OK && l->with_prompt) st = join(items, n, &joined, texts, err);
    for (size_t i = 0; i < n && st == TG_OK && !l->with_prompt; i++)
        texts[i] = (tg_text){.s = items[i].text, .len = items[i].text_len};
    if (st == TG_OK) st = tg_judge_encode(l->judge, texts, n, true, &rows, err);
    if (st == TG_OK) st = tg_judge_labels(l->judge, &rows, logits, err);
    for (size_t i = 0; i < n && st == TG_OK; i++)
        values[i] = softmax_of(logits + i * labels, labels, l->label);
    tg_encodings_fini(&rows);
    tg_buf_fini(&joined);
    tg_free(logits);
    tg_free(texts);
    return st;
}
