/* IMDB reviews, as RL4LMs's imdb and imdb_seq2seq: the first half of a review is the prompt.
 *
 * Both cut one shuffled training split into train (80 %) and val (the rest); test is the first 5000 of
 * the shuffled test split. The shuffle is numpy's, so that a seed means what it means to `datasets`. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "env-server/datapool/dataset.h"
#include "env-server/datapool/numpy.h"
#include "env-server/datapool/rows.h"
#include "env-server/datapool/rowtext.h"
#include "env-server/datapool/table/files.h"
#include "proto/split.h"

#include <string.h>

enum { TEST_SIZE = 5000 };

struct options {
    tg_pool_common common;
    int64_t seed;
    double positive_ratio;
    const char *positive;
};
static const tg_opt imdb_options[] = {
    TG_OPT_INT_OR_NULL(struct options, seed, 0, 1e15,
                       "Seed of the shuffle; unset: the run's seed."),
    TG_POOL_OPTIONS(struct options), TG_OPT_END};
static const tg_opt seq2seq_options[] = {
    TG_OPT_FLOAT(struct options, positive_ratio, "1.0", 0, 1,
                 "Share of the positive reviews to keep in train."),
    TG_OPT_INT_OR_NULL(struct options, seed, 0, 1e15,
                       "Seed of the shuffle; unset: the run's seed."),
    TG_OPT_STR_ONE_OF(struct options, positive, "train", "train|all",
                      "Splits that have only positive reviews."),
    TG_POOL_OPTIONS(struct options), TG_OPT_END};

/* ---- the folders of aclImdb ------------------------------------------------- */

static tg_status list_reviews(tg_files *files, const char *root, const char *folder,
                              tg_error *err) {
    tg_files some = {0};
    char *dir = tg_path_join(root, folder);
    tg_status st = dir ? tg_files_list(&some, dir, ".txt", err) : tg_fail_nomem(err, strlen(root));
    tg_files_sort_by_number(&some);
    for (size_t i = 0; i < some.n && st == TG_OK; i++) {
        st = tg_files_push(files, some.paths[i], err);
        some.paths[i] = NULL;
    }
    tg_files_fini(&some);
    tg_free(dir);
    return st;
}

static tg_status native(const tg_place *place, tg_table *out, tg_error *err) {
    static const char *const folders[][4] = {
        {"train/neg", "train/pos", "aclImdb/train/neg", "aclImdb/train/pos"},
        {"test/neg", "test/pos", "aclImdb/test/neg", "aclImdb/test/pos"}};
    if (place->is_file) return TG_OK;
    const char *const *names = folders[place->split == TG_SPLIT_TEST];
    tg_files files = {0};
    tg_status st = TG_OK;
    for (size_t i = 0; i < 4 && st == TG_OK && !(i == 2 && files.n); i++)
        st = list_reviews(&files, place->root, names[i], err);
    if (st == TG_OK && files.n) {
        size_t n;
        char **paths = tg_files_take(&files, &n);
        st = tg_table_open_texts(out, paths, n, err);
    }
    tg_files_fini(&files);
    return st;
}

static const tg_dataset dataset = {
    .title = "IMDB reviews",
    .names = {"aclImdb", "imdb"},
    .hub = {"stanfordnlp/imdb", "imdb"},
    .config = "plain_text",
    .layout =
        "aclImdb/train/{neg,pos}/*.txt and aclImdb/test/… (the unpacked aclImdb_v1.tar.gz), or "
        "train and test as .jsonl, .csv or .parquet with the columns text and label;",
    .native = native,
};

/* ---- rows ---------------------------------------------------------------------------------- */

static bool row_label(const json_t *row, int64_t *label, tg_error *err) {
    const json_t *v = json_object_get(row, "folder");
    if (!v) v = tg_row_field(row, "label|sentiment", err);
    if (!v) return false;
    const char *word = json_string_value(v);
    if (word && (!strcmp(word, "neg") || !strcmp(word, "negative")))
        *label = 0;
    else if (word && (!strcmp(word, "pos") || !strcmp(word, "positive")))
        *label = 1;
    else
        return tg_value_int(v, "label", label, err);
    return true;
}

static const char *row_review(const json_t *row, tg_error *err) {
    return tg_row_text(row, "text|review", err);
}

static tg_status inspect_imdb(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                              tg_error *err) {
    (void)p;
    (void)info;
    return row_review(row, err) ? TG_OK : TG_DATA;
}

static tg_status inspect_seq2seq(const tg_rowpool *p, const json_t *row, tg_row_info *info,
                                 tg_error *err) {
    const struct options *o = p->options;
    int64_t label;
    if (!row_review(row, err) || !row_label(row, &label, err)) return TG_DATA;
    bool only_positive = p->split == TG_SPLIT_TRAIN || !strcmp(o->positive, "all");
    info->samples = !only_positive || label == 1;
    return TG_OK;
}

/* Where the second half of the words begins, words being what single spaces separate; *gap is the
 * length of the space before it. */
static size_t half(const char *text, size_t *gap) {
    size_t pieces = 1, wanted, at = 0;
    for (const char *p = text; *p; p++) pieces += *p == ' ';
    wanted = pieces / 2;
    *gap = wanted > 0;
    for (; wanted; at++)
        if (text[at] == ' ') wanted--;
    return at;
}

static tg_status make_prompt(const tg_rowpool *p, const tg_picked *picked, const char **text,
                             size_t *second, tg_arena *arena, tg_sample *out, tg_error *err) {
    if (!(*text = row_review(picked->rows[0], err))) return TG_DATA;
    size_t gap;
    *second = half(*text, &gap);
    tg_buf prompt = {0};
    tg_buf_append(&prompt, *text, *second - gap);
    tg_status st = tg_sample_prompt(out, &prompt, arena, err);
    return st == TG_OK ? tg_sample_number(out, p->split, picked->number, arena, err) : st;
}

/* The reference is the whole review. */
static tg_status make_imdb(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                           tg_sample *out, tg_error *err) {
    const char *text;
    size_t second;
    tg_status st = make_prompt(p, picked, &text, &second, arena, out, err);
    return st == TG_OK ? tg_sample_only(out, text, arena, err) : st;
}

/* The reference is its second half, and the whole is meta data. */
static tg_status make_seq2seq(const tg_rowpool *p, const tg_picked *picked, tg_arena *arena,
                              tg_sample *out, tg_error *err) {
    const char *text;
    size_t second;
    tg_status st = make_prompt(p, picked, &text, &second, arena, out, err);
    if (st == TG_OK) st = tg_sample_only(out, text + second, arena, err);
    if (st == TG_OK) st = tg_sample_meta(out, json_pack("{s:s}", "reference", text), arena, err);
    return st;
}

/* ---- the pools ----------------------------------------------------------------------------- */

static tg_status open_shuffled(tg_rowpool *p, uint64_t seed, tg_error *err) {
    static const char *const columns[] = {"text", "label", "review", "sentiment", NULL};
    if (p->common->val)
        return tg_fail(err, TG_CONFIG,
                       "datapool.args.val: this pool takes val from the training reviews (the last "
                       "fifth of them, shuffled)");
    tg_split source = p->split == TG_SPLIT_TEST ? TG_SPLIT_TEST : TG_SPLIT_TRAIN;
    tg_status st = tg_dataset_open(p, &dataset, source, columns, err);
    if (st != TG_OK || !p->table.ops) return st;
    uint64_t n = p->table.count, cut = (uint64_t)((double)n * 0.8);
    st = tg_numpy_permutation(seed, n, &p->order, err);
    if (p->split == TG_SPLIT_TRAIN)
        p->end = cut;
    else if (p->split == TG_SPLIT_VAL)
        p->begin = cut, p->end = n;
    else
        p->end = n < TEST_SIZE ? n : TEST_SIZE;
    if (st == TG_OK && p->begin == p->end)
        st = tg_fail(err, TG_DATA, "%s, %s split: %llu reviews are too few", dataset.title,
                     tg_split_name(p->split), (unsigned long long)n);
    return st;
}

static tg_status open_imdb(void *state, const void *options, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    static const tg_recipe recipe = {.inspect = inspect_imdb, .make = make_imdb};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = TG_OK;
    if (o->seed == INT64_MIN && context->compat)
        st = tg_fail(err, TG_CONFIG,
                     "datapool.args.seed: RL4LMs has no default for it; give one, or leave out "
                     "compat: rl4lms");
    if (st == TG_OK)
        st = open_shuffled(p, o->seed == INT64_MIN ? context->seed : (uint64_t)o->seed, err);
    return tg_rowpool_finish(p, st, count, err);
}

/* RL4LMs shuffles anew for each split, so that its train and val overlap. */
static uint64_t seq2seq_seed(const struct options *o, const tg_datapool_context *context,
                             tg_split split) {
    if (o->seed != INT64_MIN) return (uint64_t)o->seed;
    if (!context->compat) return context->seed;
    return tg_numpy_shuffle_seed((uint32_t)context->seed, (unsigned)split - TG_SPLIT_TRAIN);
}

static tg_status open_seq2seq(void *state, const void *options, const tg_datapool_context *context,
                              tg_split split, uint64_t *count, tg_error *err) {
    static const tg_recipe recipe = {
        .inspect = inspect_seq2seq, .must_inspect = true, .make = make_seq2seq};
    const struct options *o = options;
    tg_rowpool *p = tg_rowpool_init(state, &recipe, o, &o->common, context, split);
    tg_status st = open_shuffled(p, seq2seq_seed(o, context, split), err);
    st = tg_rowpool_finish(p, st, count, err);
    if (st == TG_OK && split == TG_SPLIT_TRAIN) { /* a ratio of 0 leaves the split out */
        p->count = (uint64_t)((double)p->count * o->positive_ratio);
        *count = p->count;
    }
    return st;
}

const tg_datapool_ops tg_datapool_imdb = {
    .entry = {.name = "imdb",
              .summary = "IMDB reviews: continue the first half.",
              .options = imdb_options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_imdb,
    TG_ROWPOOL_OPS,
};

const tg_datapool_ops tg_datapool_imdb_seq2seq = {
    .entry = {.name = "imdb_seq2seq",
              .summary = "IMDB reviews in two halves, for supervised training.",
              .options = seq2seq_options,
              .options_size = sizeof(struct options),
              .built = true},
    .open = open_seq2seq,
    TG_ROWPOOL_OPS,
};
