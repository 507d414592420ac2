/* Document frequencies from a file or a data pool. A node's `last` is the last sample that was counted for it, + 1. */
#include "env-server/metric/cider_df.h"

#include "common/base/alloc.h"
#include "common/base/file.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* The logarithm of each frequency is taken once. */
tg_status tg_cider_idf(double **idf, size_t samples, tg_error *err) {
    *idf = tg_alloc_array(samples + 1, sizeof **idf);
    if (!*idf) return tg_fail_nomem(err, samples * sizeof **idf);
    for (size_t k = 0; k <= samples; k++)
        (*idf)[k] = log((double)samples) - log(fmax(1.0, (double)k));
    return TG_OK;
}

typedef struct reader {
    tg_cider_df *df;
    const tg_splitter *splitter;
    tg_splitter_work work;
    tg_wids words, nodes; /* of a text */
} reader;

static void reader_fini(reader *r) {
    tg_splitter_work_fini(&r->work);
    tg_wids_fini(&r->words);
    tg_wids_fini(&r->nodes);
}

/* Counts the n-grams of one of the sample's references. */
static tg_status count_text(reader *r, const char *text, size_t len, tg_error *err) {
    tg_cider_df *df = r->df;
    tg_wids_reset(&r->words);
    tg_status st = tg_splitter_words(r->splitter, &r->work, text, len, &df->words, &r->words, err);
    size_t n = r->words.n;
    if (st == TG_OK && !tg_wids_reserve(&r->nodes, n)) st = tg_fail_nomem(err, n);
    if (st == TG_OK && n) memset(r->nodes.v, 0, n * sizeof *r->nodes.v);
    for (size_t k = 0; k < TG_CIDER_ORDERS && k < n && st == TG_OK; k++) {
        st = tg_grams_extend(&df->grams, r->nodes.v, r->words.v + k, n - k, err);
        for (size_t i = 0; i + k < n && st == TG_OK; i++) {
            tg_gram *g = &df->grams.nodes[r->nodes.v[i]];
            g->df += g->last != df->samples + 1;
            g->last = (uint32_t)df->samples + 1;
        }
    }
    return st;
}

static tg_status count_line(reader *r, const char *line, size_t len, tg_error *err) {
    if (len == 0 || line[0] != '[') return count_text(r, line, len, err);
    json_error_t e;
    json_t *list = json_loadb(line, len, 0, &e);
    if (!list) return tg_fail(err, TG_DATA, "not a JSON list of texts: %s", e.text);
    tg_status st = TG_OK;
    for (size_t i = 0; i < json_array_size(list) && st == TG_OK; i++) {
        const json_t *text = json_array_get(list, i);
        st = json_is_string(text)
                 ? count_text(r, json_string_value(text), json_string_length(text), err)
                 : tg_fail(err, TG_DATA, "item %zu is not a text", i);
    }
    json_decref(list);
    return st;
}

tg_status tg_cider_df_read(tg_cider_df **out, const char *path, const tg_splitter *splitter,
                           tg_error *err) {
    *out = NULL;
    tg_filemap file;
    tg_status st = tg_filemap_open(&file, path, err);
    if (st != TG_OK) return st;
    tg_cider_df *df = tg_alloc(sizeof *df);
    if (!df) st = tg_fail_nomem(err, sizeof *df);
    reader r = {.df = df, .splitter = splitter};
    for (size_t at = 0; st == TG_OK && at < file.len;) {
        const char *line = (const char *)file.data + at, *end = memchr(line, '\n', file.len - at);
        size_t len = end ? (size_t)(end - line) : file.len - at;
        st = count_line(&r, line, len, err);
        df->samples++;
        if (st != TG_OK) tg_error_prefix(err, "%s:%zu: ", path, df->samples);
        at += len + 1;
    }
    if (st == TG_OK && !df->samples)
        st = tg_fail(err, TG_DATA, "%s: empty; expected the references of one sample a line", path);
    if (st == TG_OK) st = tg_cider_idf(&df->idf, df->samples, err);
    reader_fini(&r);
    tg_filemap_close(&file);
    if (st == TG_OK)
        *out = df;
    else
        tg_cider_df_destroy(&df);
    return st;
}

tg_status tg_cider_df_pool(tg_cider_df **out, const tg_datapool *pool, const tg_splitter *splitter,
                           tg_error *err) {
    tg_cider_df *df = *out = tg_alloc(sizeof *df);
    if (!df) return tg_fail_nomem(err, sizeof *df);
    reader r = {.df = df, .splitter = splitter};
    tg_arena arena = {0};
    tg_status st = TG_OK;
    for (; df->samples < pool->count && st == TG_OK; df->samples++) {
        tg_sample s;
        tg_arena_reset(&arena);
        st = tg_datapool_get(pool, df->samples, &arena, &s, err);
        for (size_t k = 0; st == TG_OK && k < s.n_references; k++)
            st = count_text(&r, s.references[k], strlen(s.references[k]), err);
    }
    if (st == TG_OK && !df->samples) st = tg_fail(err, TG_DATA, "the data pool has no samples");
    if (st == TG_OK) st = tg_cider_idf(&df->idf, df->samples, err);
    tg_arena_fini(&arena);
    reader_fini(&r);
    if (st != TG_OK) tg_cider_df_destroy(out);
    return st;
}

void tg_cider_df_destroy(tg_cider_df **df) {
    if (!*df) return;
    tg_words_fini(&(*df)->words);
    tg_grams_fini(&(*df)->grams);
    tg_free((*df)->idf);
    tg_free(*df);
    *df = NULL;
}
