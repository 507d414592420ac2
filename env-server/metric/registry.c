/* All metrics, and how one is opened and called. A new one is one file and one line here. */
#include "env-server/metric/metric.h"

#include "common/base/alloc.h"
#include "env-server/metric/rows.h"

#include <string.h>

static const tg_entry *const built[] = {
    &tg_metric_increasing_numbers.entry,
    &tg_metric_dates.entry,
    &tg_metric_meteor.entry,
    &tg_metric_cider.entry,
    &tg_metric_spice.entry,
    &tg_metric_spider.entry,
    &tg_metric_sari.entry,
    &tg_metric_self_bleu.entry,
    &tg_metric_distinct.entry,
    &tg_metric_length.entry,
    &tg_metric_parent_totto.entry,
    &tg_metric_bleu_totto.entry,
    &tg_metric_diversity.entry,
    &tg_metric_concept_cover.entry,
    &tg_metric_rouge.entry,
    &tg_metric_bleu.entry,
    &tg_metric_google_bleu.entry,
    &tg_metric_sacre_bleu.entry,
    &tg_metric_chrf.entry,
    &tg_metric_ter.entry,
    &tg_metric_rouge_l_max.entry,
    &tg_metric_learned_reward.entry,
    &tg_metric_bert_score.entry,
    &tg_metric_bleurt.entry,
    &tg_metric_intent_accuracy.entry,
    &tg_metric_emotion_accuracy.entry,
    &tg_metric_causal_perplexity.entry,
    NULL,
};

const tg_registry *tg_metric_registry(void) {
    static const tg_registry registry = {"metric", built, tg_metric_planned};
    return &registry;
}

tg_status tg_metric_open(tg_metric *m, const tg_metric_ops *ops, const void *options,
                         const tg_open_context *ctx, tg_error *err) {
    void *state;
    memset(m, 0, sizeof *m);
    tg_status st = tg_state_open(&state, ops->state_size, ops->open, options, ctx, err);
    if (st == TG_OK) *m = (tg_metric){ops, state};
    return st;
}

void tg_metric_close(tg_metric *m) {
    if (!m->ops) return;
    if (m->ops->close) m->ops->close(m->state);
    tg_free(m->state);
    memset(m, 0, sizeof *m);
}

static tg_metric_value *push(tg_metric_out *out, const char *key, tg_error *err) {
    if (out->n == out->cap) {
        size_t cap = out->cap ? 2 * out->cap : 8;
        tg_metric_value *values = tg_arena_array(out->arena, cap, sizeof *values);
        if (!values) {
            tg_fail_nomem(err, cap * sizeof *values);
            return NULL;
        }
        if (out->n) memcpy(values, out->values, out->n * sizeof *values);
        out->values = values, out->cap = cap;
    }
    tg_metric_value *v = &out->values[out->n];
    *v = (tg_metric_value){.key = tg_arena_strdup(out->arena, key), .error = ""};
    if (!v->key) {
        tg_fail_nomem(err, strlen(key));
        return NULL;
    }
    return v;
}

tg_status tg_metric_emit(tg_metric_out *out, const char *key, double corpus, const double *samples,
                         size_t n_samples, tg_error *err) {
    tg_metric_value *v = push(out, key, err);
    if (!v) return TG_NOMEM;
    v->has_corpus = true;
    v->corpus = corpus;
    if (samples && n_samples) {
        double *copy = tg_arena_array(out->arena, n_samples, sizeof *copy);
        if (!copy) return tg_fail_nomem(err, n_samples * sizeof *copy);
        memcpy(copy, samples, n_samples * sizeof *copy);
        v->samples = copy, v->n_samples = n_samples;
    }
    out->n++;
    return TG_OK;
}

tg_status tg_metric_emit_error(tg_metric_out *out, const char *key, const char *why,
                               tg_error *err) {
    tg_metric_value *v = push(out, key, err);
    if (!v) return TG_NOMEM;
    v->error = tg_arena_strdup(out->arena, why);
    if (!v->error) return tg_fail_nomem(err, strlen(why));
    out->n++;
    return TG_OK;
}

tg_status tg_metric_compute(const tg_metric *m, const tg_metric_input *in, tg_metric_out *out,
                            tg_error *err) {
    tg_error why = {0};
    size_t n_before = out->n;
    tg_status st = m->ops->compute(m->state, in, out, &why);
    if (st == TG_OK) return TG_OK;
    if (st == TG_NOMEM) return tg_fail(err, TG_NOMEM, "%s", why.msg);
    out->n = n_before;
    return tg_metric_emit_error(out, m->ops->entry.name, why.msg, err);
}
