/* Reads all references as one text, tokenizes it and runs the windows. */
#include "learner/train/perplexity.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/locate.h"
#include "common/nn/perplexity.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

#define P tg_perplexity_settings
static const tg_opt options[] = {
    TG_OPT_INT_REQUIRED(P, stride, 1, 1e9, "New tokens per window."),
    TG_OPT_STR(P, tokenizer_id, NULL, "Tokenizer of the texts."),
    TG_OPT_STR(P, model_type, "causal", "Kind of the policy."),
    TG_OPT_BOOL(P, use_text_from_meta_data, "false", "Texts are meta's \"reference\"."),
    TG_OPT_STR(P, model_name, NULL, "Another model, which a worker runs."),
    TG_OPT_INT_OR_NULL(P, max_tokens, 2, 1e12, "Tokens of the texts that count; unset: all."),
    TG_OPT_END};
#undef P

tg_status tg_perplexity_read(tg_perplexity_settings *s, const tg_node *metrics, tg_arena *arena,
                             tg_error *err) {
    *s = (tg_perplexity_settings){0};
    for (size_t i = 0; !tg_node_is_null(metrics) && i < metrics->n_items; i++) {
        const tg_node *id = tg_node_get(metrics->items[i], "id");
        const tg_node *args = tg_node_get(metrics->items[i], "args");
        if (!id || !id->text || strcmp(id->text, "causal_perplexity") != 0) continue;
        if (tg_node_is_null(args)) continue; /* the workers answer that */
        tg_perplexity_settings found;
        tg_status st =
            tg_opts_read(options, &found, args, "train_evaluation.metrics.args", arena, err);
        if (st != TG_OK) return st;
        if (found.model_name) continue;
        *s = found;
        s->wanted = true;
    }
    return TG_OK;
}

static tg_status add_text(tg_buf *all, const char *text, size_t len, tg_error *err) {
    if (all->len) tg_buf_puts(all, "\n\n");
    tg_buf_append(all, text, len);
    return all->failed ? tg_fail_nomem(err, all->len) : TG_OK;
}

static tg_status add_meta(tg_buf *all, const tg_sample *s, tg_error *err) {
    json_t *meta = s->meta_json && *s->meta_json ? json_loads(s->meta_json, 0, NULL) : NULL;
    const json_t *text = json_object_get(meta, "reference");
    tg_status st = json_is_string(text)
                       ? add_text(all, json_string_value(text), json_string_length(text), err)
                       : tg_fail(err, TG_DATA, "sample \"%s\": meta has no \"reference\"", s->id);
    json_decref(meta);
    return st;
}

static tg_status collect(const tg_perplexity_settings *p, const tg_split_samples *samples,
                         tg_buf *all, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < samples->n && st == TG_OK; i++) {
        const tg_sample *s = samples->all[i];
        if (p->use_text_from_meta_data) {
            st = add_meta(all, s, err);
            continue;
        }
        for (size_t k = 0; k < s->n_references && st == TG_OK; k++)
            st = add_text(all, s->references[k], strlen(s->references[k]), err);
    }
    return st;
}

/* The run's own where the metric asks for the same one. */
static tg_status open_tokenizer(tg_run *run, tg_error *err) {
    const char *id = run->settings->perplexity.tokenizer_id;
    char *folder = NULL;
    tg_status st = tg_model_locate(id ? id : run->model_folder, &folder, err);
    if (st == TG_OK && !strcmp(folder, run->tokenizer_folder))
        run->text_tokenizer = run->tokenizer;
    else if (st == TG_OK)
        st = tg_tokenizer_open(&run->text_tokenizer, folder, err);
    tg_free(folder);
    return st;
}

void tg_perplexity_prepare(tg_run *run) {
    tg_error ignored;
    if (run->settings->perplexity.wanted && open_tokenizer(run, &ignored) != TG_OK)
        return; /* evaluations say why */
}

static tg_status encode(tg_run *run, const tg_buf *all, tg_ids *ids, tg_error *err) {
    tg_status st = run->text_tokenizer ? TG_OK : open_tokenizer(run, err);
    return st == TG_OK ? tg_tokenizer_encode(run->text_tokenizer, all->data ? all->data : "",
                                             all->len, TG_ENCODE_SPECIAL, ids, err)
                       : st;
}

static bool stop(void *run) {
    return tg_halt_requested(((const tg_run *)run)->opts.halt);
}

tg_status tg_perplexity_of_split(tg_run *run, tg_model *m, const tg_split_samples *samples,
                                 double *out, tg_error *err) {
    const tg_perplexity_settings *p = &run->settings->perplexity;
    if (strcmp(p->model_type, "causal") != 0)
        return tg_fail(err, TG_UNSUPPORTED, "model_type: expected causal, found \"%.60s\"",
                       p->model_type);
    tg_buf all = {0};
    tg_ids ids = {0};
    tg_status st = collect(p, samples, &all, err);
    if (st == TG_OK) st = encode(run, &all, &ids, err);
    tg_buf_fini(&all); /* makes room */
    size_t n = ids.n;
    if (p->max_tokens != INT64_MIN) n = TG_MIN(n, (size_t)p->max_tokens);
    const tg_perplexity_opts opts = {
        .stride = (int)TG_MIN(p->stride, INT_MAX), .stop = stop, .arg = run};
    if (st == TG_OK) st = tg_perplexity(m, ids.data, n, opts, out, err);
    tg_ids_fini(&ids);
    return st;
}
