/* Whether a classifier finds the wanted label in a reply. As in RL4LMs the input is the last utterance of the prompt that is not empty, with
 * the reply right behind it. */
#include "env-server/judge/judgement.h"

#include "common/base/alloc.h"
#include "env-server/judge/judge.h"

#include <jansson.h>
#include <string.h>

static const char end_of_utterance[] = "<EOU>";

tg_status tg_match_open(tg_match *m, const tg_open_context *ctx, const char *owner,
                        const char *model_name, const char *key, int64_t first, tg_error *err) {
    *m = (tg_match){.key = key, .first = first};
    return tg_judge_open(
        &m->judge, ctx,
        (tg_judge_spec){.owner = owner, .name = model_name, .kind = TG_JUDGE_LABELS}, err);
}

void tg_match_close(void *match) {
    tg_judge_close(&((tg_match *)match)->judge);
}

static tg_status wanted_label(const tg_match *m, const tg_sample *s, int64_t *out, tg_error *err) {
    json_t *meta = s && s->meta_json && *s->meta_json ? json_loads(s->meta_json, 0, NULL) : NULL;
    const json_t *number = json_array_get(json_object_get(meta, m->key), 0);
    tg_status st = TG_OK;
    if (json_is_integer(number))
        *out = json_integer_value(number) - m->first;
    else
        st = tg_fail(err, TG_DATA,
                     "sample \"%s\": meta: expected {\"%s\": [number]}, as the data pool "
                     "daily_dialog has it",
                     s ? s->id : "", m->key);
    json_decref(meta);
    return st;
}

/* The last part between marks that is not empty. */
static const char *last_utterance(const char *prompt, size_t *len) {
    const char *best = "";
    *len = 0;
    for (;;) {
        const char *end = strstr(prompt, end_of_utterance);
        size_t n = end ? (size_t)(end - prompt) : strlen(prompt);
        if (n) best = prompt, *len = n;
        if (!end) return best;
        prompt = end + strlen(end_of_utterance);
    }
}

static void add_text(tg_buf *joined, const tg_metric_item *item) {
    size_t len;
    const char *last = last_utterance(item->sample ? item->sample->prompt_text : "", &len);
    tg_buf_append(joined, last, len);
    tg_buf_append(joined, item->text, item->text_len);
}

static size_t largest(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

tg_status tg_match_values(const void *match, const tg_metric_item *items, size_t n, double *values,
                          tg_error *err) {
    const tg_match *m = match;
    const size_t labels = (size_t)tg_judge_arch(m->judge)->n_labels;
    tg_text *texts = tg_alloc_array(n, sizeof *texts);
    float *logits = tg_alloc_array(n * labels, sizeof *logits);
    tg_buf joined = {0};
    tg_encodings rows = {0};
    tg_status st = texts && logits ? TG_OK : tg_fail_nomem(err, n * labels * sizeof *logits);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        size_t begin = joined.len;
        add_text(&joined, &items[i]);
        texts[i].len = joined.len - begin;
    }
    if (st == TG_OK && joined.failed) st = tg_fail_nomem(err, joined.len);
    for (size_t i = 0, at = 0; i < n && st == TG_OK; at += texts[i++].len)
        texts[i].s = joined.data ? joined.data + at : "";
    if (st == TG_OK) st = tg_judge_encode(m->judge, texts, n, false, &rows, err);
    if (st == TG_OK) st = tg_judge_labels(m->judge, &rows, logits, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        int64_t wanted = 0;
        st = wanted_label(m, items[i].sample, &wanted, err);
        values[i] = (int64_t)largest(logits + i * labels, labels) == wanted ? 1 : 0;
    }
    tg_encodings_fini(&rows);
    tg_buf_fini(&joined);
    tg_free(logits);
    tg_free(texts);
    return st;
}
