/* TL;DR: summaries of Reddit posts, and pairs of summaries of which one was preferred; as in TRIL.
 *
 * A post is cut so that its prompt, which ends in "\nTL;DR:", fits into max_prompt_length tokens. */
#include "common/text/tokenizer.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/metric/pystr.h"
#include "proto/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RESERVED = 5 }; /* tokens kept free for the ending */

struct options {
    tg_pool_common common;
    int64_t max_prompt_length;
    const tg_node *n_samples;
    const char *tokenizer_id;
};
static const tg_opt tldr_options[] = {
    TG_OPT_INT_OR_NULL(struct options, max_prompt_length, RESERVED + 1, 1e9,
                       "Tokens of a prompt; unset: env.args.max_prompt_length."),
    TG_OPT_NODE(struct options, n_samples,
                "Samples of each split, such as {train: 1000}; unset: {val: 100, test: 500}."),
    TG_OPT_ROW(struct options, tokenizer_id, TG_T_STR, TG_OPT_NULLABLE | TG_OPT_IGNORED, NULL, 0, 0,
               NULL, "Without effect: the run's tokenizer counts."),
    TG_POOL_OPTIONS(struct options), TG_OPT_END};
static const tg_opt preference_options[] = {TG_POOL_OPTIONS(struct options), TG_OPT_END};

static const tg_dataset posts = {
    .title = "TL;DR",
    .names = {"openai_summarize_tldr", "tldr"},
    .hub = {"CarperAI/openai_summarize_tldr"},
    .layout = "train, valid and test as .jsonl, .csv or .parquet with prompt and label;",
};
static const tg_dataset comparisons = {
    .title = "TL;DR comparisons",
    .names = {"openai_summarize_comparisons", "tldr_preference"},
    .hub = {"CarperAI/openai_summarize_comparisons"},
    .layout =
        "train, valid1 and test as .jsonl, .csv or .parquet with prompt, chosen and rejected;",
};

static tg_status set_id(const tg_picked *picked, tg_arena *arena, tg_sample *out, tg_error *err) {
    char id[24];
    snprintf(id, sizeof id, "%" PRIu64, picked->number);
    out->id = tg_arena_strdup(arena, id);
    return out->id ? TG_OK : tg_fail_nomem(err, sizeof id);
}

/* ---- posts --------------------------------------------------------------------------------- */

/* Replaces text by what its first `room` tokens say, stripped. */
static tg_status shorten(const tg_rowpool *p, size_t room, tg_buf *text, tg_error *err) {
    tg_status st = TG_OK;
    tg_buf cut = {0};
    if (p->context.tokenizer && room) {
        tg_ids ids = {0};
        st = tg_tokenizer_encode(p->context.tokenizer, text->data ? text->data : "", text->len, 0,
                                 &ids, err);
        if (st == TG_OK)
            st = tg_tokenizer_decode(p->context.tokenizer, ids.data, ids.n < room ? ids.n : room,
                                     TG_DECODE_SKIP_SPECIAL, &cut, err);
        tg_ids_fini(&ids);
    } else {
        tg_buf_append(&cut, text->data, text->len);
    }
    size_t len = cut.len;
    const char *begin = tg_py_strip(cut.data ? cut.data : "", &len);
    tg_buf_reset(text);
    tg_buf_append(text, begin, len);
    text->failed |= cut.failed;
    tg_buf_fini(&cut);
    return st;
}

static tg_status inspect_post(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                              tg_error *err) {
    (void)p;
    (void)info;
    return tg_row_text(row, "prompt", err) && tg_row_text(row, "label", err) ? TG_OK : TG_DATA;
}

static tg_status make_post(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                           tg_sample *out, tg_error *err) {
    const struct options *o = p->options;
    const char *post = tg_row_text(picked->rows[0], "prompt", err);
    const char *label = post ? tg_row_text(picked->rows[0], "label", err) : NULL;
    if (!label) return TG_DATA;
    size_t most = o->max_prompt_length != INT64_MIN ? (size_t)o->max_prompt_length
                                                    : p->context.max_prompt_length;
    const char *end = strstr(post, "TL;DR:");
    tg_buf prompt = {0};
    tg_buf_append(&prompt, post, end ? (size_t)(end - post) : strlen(post));
    tg_status st = shorten(p, most > RESERVED ? most - RESERVED : 0, &prompt, err);
    tg_buf_puts(&prompt, "\nTL;DR:");
    if (st == TG_OK) st = shorten(p, most, &prompt, err);
    if (st == TG_OK) st = tg_sample_prompt(out, &prompt, arena, err);
    tg_buf_fini(&prompt);
    if (st == TG_OK) st = tg_sample_only(out, label, arena, err);
    if (st == TG_OK) st = tg_sample_meta(out, json_pack("{s:s}", "reference", label), arena, err);
    return st == TG_OK ? set_id(picked, arena, out, err) : st;
}

/* How many samples of the split are used; UINT64_MAX: all. */
static tg_status wanted(const struct options *o, tg_split split, uint64_t *n, tg_error *err) {
    static const uint64_t usual[] = {0, UINT64_MAX, 100, 500};
    *n = usual[split];
    if (tg_node_is_null(o->n_samples)) return TG_OK;
    const tg_node *v = tg_node_get(o->n_samples, tg_split_name(split));
    if (!v && split == TG_SPLIT_VAL) v = tg_node_get(o->n_samples, "valid");
    int64_t value = 0;
    *n = UINT64_MAX;
    if (o->n_samples->kind != TG_NODE_MAP || (v && (!tg_node_int(v, &value) || value < 1)))
        return tg_node_fail(v ? v : o->n_samples, "datapool.args.n_samples", err,
                            "expected numbers of samples by split, such as {val: 100, test: 500}");
    if (v) *n = (uint64_t)value;
    return TG_OK;
}

static tg_status open_tldr(void *state, const void *options, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const char *const columns[] = {"prompt", "label", NULL};
    static const tg_recipe recipe = {.inspect = inspect_post, .make = make_post};
    const struct options *o = options;
    uint64_t most = 0;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = wanted(o, split, &most, err);
    if (st == TG_OK) st = tg_dataset_open(p, &posts, split, columns, err);
    if (st == TG_OK && most < p->table.count) p->end = most;
    return tg_rowpool_finish(p, st, count, err);
}

/* ---- comparisons --------------------------------------------------------------------------- */

static size_t count_words(const char *text) {
    size_t len = strlen(text), n = 0, words = 0;
    bool inside = false;
    for (size_t i = 0; i < len; i += n) {
        bool space = tg_py_space(tg_py_point(text + i, len - i, &n));
        words += !space && !inside;
        inside = !space;
    }
    return words;
}

/* Pairs of equal or very short summaries say nothing. */
static tg_status inspect_pair(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                              tg_error *err) {
    (void)p;
    const char *chosen = tg_row_text(row, "prompt", err) ? tg_row_text(row, "chosen", err) : NULL;
    const char *rejected = chosen ? tg_row_text(row, "rejected", err) : NULL;
    if (!rejected) return TG_DATA;
    info->samples =
        strcmp(chosen, rejected) != 0 && count_words(chosen) >= 5 && count_words(rejected) >= 5;
    return TG_OK;
}

static tg_status make_pair(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                           tg_sample *out, tg_error *err) {
    (void)p;
    const json_t *row = picked->rows[0];
    const char *text = tg_row_text(row, "prompt", err);
    const char *chosen = text ? tg_row_text(row, "chosen", err) : NULL;
    const char *rejected = chosen ? tg_row_text(row, "rejected", err) : NULL;
    if (!rejected) return TG_DATA;
    tg_buf prompt = {0};
    tg_buf_puts(&prompt, text);
    tg_status st = tg_sample_prompt(out, &prompt, arena, err);
    if (st == TG_OK) st = tg_sample_only(out, chosen, arena, err);
    if (st == TG_OK)
        st = tg_sample_meta(out, json_pack("{s:s, s:s}", "chosen", chosen, "rejected", rejected),
                            arena, err);
    return st == TG_OK ? set_id(picked, arena, out, err) : st;
}

static tg_status open_preference(void *state, const void *options,
                                 const tg_datapool_context *context, tg_split split,
                                 uint64_t *count, tg_error *err) {
    static const char *const columns[] = {"prompt", "chosen", "rejected", NULL};
    static const tg_recipe recipe = {
        .inspect = inspect_pair, .must_inspect = true, .make = make_pair};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = tg_dataset_open(p, &comparisons, split, columns, err);
    return tg_rowpool_finish(p, st, count, err);
}

const tg_datapool_ops tg_datapool_tldr = {
    .entry = {.name = "tldr",
              .summary = "TL;DR: summarise a Reddit post.",
              .options = tldr_options,
              .options_size = sizeof(struct options),
              .built = true},
    .integer_ids = true,
    .open = open_tldr,
    TG_ROWPOOL_OPS,
};

const tg_datapool_ops tg_datapool_tldr_preference = {
    .entry = {.name = "tldr_preference",
              .summary = "TL;DR: two summaries of a post, of which one was preferred.",
              .options = preference_options,
              .options_size = sizeof(struct options),
              .built = true},
    .integer_ids = true,
    .open = open_preference,
    TG_ROWPOOL_OPS,
};
