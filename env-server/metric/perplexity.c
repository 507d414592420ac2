/* The metric causal_perplexity: of the references under a causal model. In a run that model is the policy, which only the learner has: it
 * computes the value, and a worker adds nothing. With model_name a worker runs that model. */
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/alloc.h"
#include "common/config/locate.h"
#include "env-server/judge/judge.h"
#include "env-server/metric/rows.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

struct options {
    int64_t stride, max_tokens;
    const char *tokenizer_id, *model_type, *model_name;
    bool use_text_from_meta_data;
};
#define O struct options
static const tg_opt options[] = {
    TG_OPT_INT_REQUIRED(O, stride, 1, 1e9, "New tokens per window."),
    TG_OPT_STR(O, tokenizer_id, NULL, "Tokenizer of the texts; unset: the model's own."),
    TG_OPT_STR(O, model_type, "causal", "Kind of the policy; only causal has perplexities."),
    TG_OPT_BOOL(O, use_text_from_meta_data, "false", "Texts are meta's \"reference\"."),
    TG_OPT_STR(O, model_name, NULL, "Causal model, as a folder or a name; unset: the policy."),
    TG_OPT_INT_OR_NULL(O, max_tokens, 2, 1e12, "Tokens of the texts that count; unset: all."),
    TG_OPT_END};
#undef O

struct state {
    tg_judge *judge; /* NULL: the learner's work */
    tg_tokenizer *tokenizer;
    struct options o;
};

static void close_metric(void *state) {
    struct state *s = state;
    tg_judge_close(&s->judge);
    tg_tokenizer_destroy(&s->tokenizer);
}

static tg_status open_tokenizer(struct state *s, tg_error *err) {
    char *folder;
    tg_status st = tg_model_locate(s->o.tokenizer_id, &folder, err);
    if (st != TG_OK) return tg_error_prefix(err, "causal_perplexity: tokenizer_id: ");
    st = tg_tokenizer_open(&s->tokenizer, folder, err);
    tg_free(folder);
    return st;
}

static tg_status open_metric(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    s->o = *(const struct options *)opts;
    if (strcmp(s->o.model_type, "causal") != 0)
        return tg_fail(err, TG_CONFIG,
                       "causal_perplexity: model_type: expected causal, found \"%.60s\"",
                       s->o.model_type);
    if (!s->o.model_name && !ctx->train)
        return tg_fail(err, TG_CONFIG,
                       "causal_perplexity: model_name: missing; in a run it is the policy, here a "
                       "causal model has to be given");
    tg_status st = TG_OK;
    if (s->o.tokenizer_id) st = open_tokenizer(s, err); /* a run should know at once */
    if (st == TG_OK && s->o.model_name)
        st = tg_judge_open(&s->judge, ctx,
                           (tg_judge_spec){.owner = "causal_perplexity",
                                           .name = s->o.model_name,
                                           .kind = TG_JUDGE_TEXT},
                           err);
    if (st != TG_OK) close_metric(s);
    return st;
}

static tg_status add_texts(const struct state *s, const tg_sample *sample, tg_buf *all,
                           tg_error *err) {
    if (!s->o.use_text_from_meta_data) {
        for (size_t k = 0; sample && k < sample->n_references; k++) {
            if (all->len) tg_buf_puts(all, "\n\n");
            tg_buf_puts(all, sample->references[k]);
        }
        return TG_OK;
    }
    json_t *meta = sample && sample->meta_json && *sample->meta_json
                       ? json_loads(sample->meta_json, 0, NULL)
                       : NULL;
    const char *text = json_string_value(json_object_get(meta, "reference"));
    if (text && all->len) tg_buf_puts(all, "\n\n");
    if (text) tg_buf_puts(all, text);
    json_decref(meta);
    return text ? TG_OK
                : tg_fail(err, TG_DATA, "sample \"%s\": meta has no \"reference\"",
                          sample ? sample->id : "");
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    const struct state *s = state;
    if (!s->judge || in->split == TG_SPLIT_TRAIN) return TG_OK;
    tg_buf all = {0};
    tg_ids ids = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < in->n && st == TG_OK; i++)
        st = add_texts(s, in->items[i].sample, &all, err);
    if (st == TG_OK && all.failed) st = tg_fail_nomem(err, all.len);
    const tg_tokenizer *t = s->tokenizer ? s->tokenizer : tg_judge_tokenizer(s->judge);
    if (st == TG_OK)
        st =
            tg_tokenizer_encode(t, all.data ? all.data : "", all.len, TG_ENCODE_SPECIAL, &ids, err);
    double value = 0;
    size_t n = ids.n;
    if (s->o.max_tokens != INT64_MIN) n = TG_MIN(n, (size_t)s->o.max_tokens);
    if (st == TG_OK)
        st = tg_judge_perplexity(s->judge, ids.data, n, (int)TG_MIN(s->o.stride, INT_MAX), &value,
                                 err);
    if (st == TG_OK) st = tg_metric_emit(out, "fluency_metrics/perplexity", value, NULL, 0, err);
    tg_ids_fini(&ids);
    tg_buf_fini(&all);
    return st;
}

const tg_metric_ops tg_metric_causal_perplexity = {
    .entry = {.name = "causal_perplexity",
              .summary = "Perplexity of the references under the policy, or under a given model.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .open = open_metric,
    .close = close_metric,
    .compute = compute,
};
