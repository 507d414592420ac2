/* Reading of a sample and PARENT's arithmetic, with the smoothing constants of ToTTo's script. */
#include "env-server/metric/totto.h"

#include "common/base/alloc.h"
#include "env-server/metric/moses.h"
#include "env-server/metric/ngram.h"
#include "env-server/metric/pystr.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { ORDERS = 4 };
static const double SMOOTHING = 1e-5;

void tg_totto_fini(tg_totto *t) {
    tg_words_fini(&t->words);
    tg_wids_fini(&t->ids);
    tg_free(t->entries);
    tg_free(t->in_table);
    tg_lcs_fini(&t->lcs);
    tg_buf_fini(&t->line);
    tg_buf_fini(&t->plain);
    tg_buf_fini(&t->split);
    memset(t, 0, sizeof *t);
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* The 13a words of a prepared text. */
static tg_totto_span add_words(tg_totto *t, const char *text, size_t len) {
    tg_totto_span s = {t->ids.n, t->ids.n};
    tg_buf_reset(&t->split);
    tg_moses_13a(&t->split, text, len);
    if (t->split.failed) t->words.failed = true;
    if (t->split.len) tg_words_split(&t->words, t->split.data, t->split.len, &t->ids);
    s.end = t->ids.n;
    return s;
}

/* Lower case and detokenised, in t->plain. */
static void prepare(tg_totto *t, const char *text, size_t len) {
    tg_buf lower = {0};
    tg_buf_reset(&t->plain);
    tg_py_lower(&lower, text, len);
    tg_moses_detokenize(&t->plain, lower.data ? lower.data : "", lower.len);
    t->words.failed |= lower.failed || t->plain.failed;
    tg_buf_fini(&lower);
}

static tg_totto_span add_text(tg_totto *t, const char *text, size_t len) {
    prepare(t, text, len);
    const char *plain = t->plain.len ? t->plain.data : "<null>";
    return add_words(t, plain, t->plain.len ? t->plain.len : strlen(plain));
}

/* One entry of the line that stands for a table: "key|||value", tabs between entries. */
static void put_entry(tg_buf *line, const char *key, const json_t *value) {
    const char *text = json_string_value(value);
    if (!text || !*text) return;
    if (line->len) tg_buf_putc(line, '\t');
    tg_buf_puts(line, key);
    tg_buf_puts(line, "|||");
    for (; *text; text++)
        tg_buf_putc(line, *text == '|' ? '-' : *text == '\t' || *text == '\n' ? ' ' : *text);
}

static void put_cell(tg_buf *line, const json_t *cell) {
    bool header = json_is_true(json_object_get(cell, "is_header"));
    put_entry(line, header ? "header" : "cell", json_object_get(cell, "value"));
}

static bool push_entry(tg_totto *t, tg_totto_span s) {
    if (t->n_entries == t->cap_entries) {
        size_t cap = t->cap_entries ? 2 * t->cap_entries : 32;
        tg_totto_span *more = tg_realloc_array(t->entries, cap, sizeof *more);
        if (!more) return false;
        t->entries = more, t->cap_entries = cap;
    }
    t->entries[t->n_entries++] = s;
    return true;
}

/* The values of the prepared line become entries. */
static bool read_entries(tg_totto *t) {
    prepare(t, t->line.data ? t->line.data : "", t->line.len);
    t->words.failed |= t->line.failed;
    for (size_t at = 0; at < t->plain.len;) {
        const char *begin = t->plain.data + at, *end = memchr(begin, '\t', t->plain.len - at);
        size_t len = end ? (size_t)(end - begin) : t->plain.len - at;
        at += len + 1;
        const char *value = memmem(begin, len, "|||", 3);
        if (!value) continue;
        value += 3;
        tg_totto_span s = add_words(t, value, len - (size_t)(value - begin));
        if (s.end > s.begin && !push_entry(t, s)) return false;
    }
    return true;
}

static bool mark_table(tg_totto *t) {
    if (t->words.failed || t->ids.failed) return false;
    if (t->words.count > t->cap_in_table) {
        size_t cap = 2 * t->words.count;
        uint8_t *more = tg_realloc_array(t->in_table, cap, 1);
        if (!more) return false;
        t->in_table = more, t->cap_in_table = cap;
    }
    if (t->in_table) memset(t->in_table, 0, t->cap_in_table);
    for (size_t k = 0; k < t->n_entries; k++)
        for (size_t i = t->entries[k].begin; i < t->entries[k].end; i++)
            t->in_table[t->ids.v[i]] = 1;
    return true;
}

static const json_t *cell_at(const json_t *table, const json_t *place) {
    return json_array_get(
        json_array_get(table, (size_t)json_integer_value(json_array_get(place, 0))),
        (size_t)json_integer_value(json_array_get(place, 1)));
}

static tg_status read_table(tg_totto *t, const json_t *raw, tg_error *err) {
    const json_t *table = json_object_get(raw, "table"), *row, *cell, *place;
    const json_t *marked = json_object_get(raw, "highlighted_cells");
    size_t i, j;
    if (!json_is_array(table))
        return tg_fail(err, TG_DATA, "meta has no raw_table.table; expected a list of rows");
    const json_t *overlap = json_object_get(raw, "overlap_subset");
    t->overlap = json_is_true(overlap);
    tg_buf_reset(&t->line);
    json_array_foreach(table, i, row) json_array_foreach(row, j, cell) put_cell(&t->line, cell);
    put_entry(&t->line, "page_title", json_object_get(raw, "table_page_title"));
    put_entry(&t->line, "section_title", json_object_get(raw, "table_section_title"));
    put_entry(&t->line, "section_text", json_object_get(raw, "table_section_text"));
    bool ok = read_entries(t) && mark_table(t);
    /* The second reading keeps only what a text should mention. */
    t->n_entries = 0;
    tg_buf_reset(&t->line);
    json_array_foreach(marked, i, place) put_cell(&t->line, cell_at(table, place));
    put_entry(&t->line, "page_title", json_object_get(raw, "table_page_title"));
    put_entry(&t->line, "section_title", json_object_get(raw, "table_section_title"));
    ok = ok && read_entries(t);
    return ok && !t->words.failed ? TG_OK : tg_fail_nomem(err, t->line.len);
}

/* The k-th reference: the sample's, or (RL4LMs) the final sentence of the table's annotations. */
static const char *reference(const tg_totto *t, const tg_sample *s, const json_t *raw, size_t k) {
    if (!t->compat) return k < s->n_references ? s->references[k] : "";
    const json_t *notes = json_object_get(raw, "sentence_annotations");
    const json_t *text = json_is_array(notes)
                             ? json_object_get(json_array_get(notes, k), "final_sentence")
                             : json_array_get(json_object_get(notes, "final_sentence"), k);
    return json_is_string(text) ? json_string_value(text) : "";
}

bool tg_totto_breaks_lines(const char *text, size_t len) {
    return len && memchr(text, '\n', len);
}

tg_status tg_totto_read(tg_totto *t, const tg_metric_item *item, tg_error *err) {
    tg_words_reset(&t->words);
    tg_wids_reset(&t->ids);
    t->n_entries = 0;
    const tg_sample *s = item->sample;
    json_error_t e;
    json_t *meta = s->meta_json && *s->meta_json ? json_loads(s->meta_json, 0, &e) : NULL;
    if (!meta)
        return tg_fail(err, TG_DATA, "sample \"%s\" has no meta; expected {\"raw_table\": …}",
                       s->id);
    const json_t *raw = json_object_get(meta, "raw_table");
    tg_status st = read_table(t, raw, err);
    if (st == TG_OK) t->prediction = add_text(t, item->text, item->text_len);
    for (size_t k = 0; k < TG_TOTTO_REFERENCES && st == TG_OK; k++) {
        const char *text = reference(t, s, raw, k);
        t->references[k] = add_text(t, text, strlen(text));
    }
    json_decref(meta);
    if (st != TG_OK) return st;
    size_t known = t->cap_in_table;
    if (t->words.count > known) { /* words that only the texts have */
        uint8_t *more = tg_realloc_array(t->in_table, 2 * t->words.count, 1);
        if (!more) return tg_fail_nomem(err, t->words.count);
        t->in_table = more, t->cap_in_table = 2 * t->words.count;
        memset(more + known, 0, t->cap_in_table - known);
    }
    return t->words.failed || t->ids.failed ? tg_fail_nomem(err, t->ids.n) : TG_OK;
}

/* ---- PARENT ------------------------------------------------------------------------------------ */

/* Mean share of each entry's words that the text has in their order. */
static bool mention(tg_totto *t, tg_totto_span text, double *out) {
    double sum = 0;
    for (size_t k = 0; k < t->n_entries; k++) {
        size_t n = t->entries[k].end - t->entries[k].begin, common;
        if (!tg_lcs_length(&t->lcs, t->ids.v + t->entries[k].begin, n, t->ids.v + text.begin,
                           text.end - text.begin, t->words.count, &common))
            return false;
        sum += (double)common / (double)n;
    }
    *out = t->n_entries ? sum / (double)t->n_entries : 0;
    return true;
}

/* Share of an n-gram's words that the table has. */
static double entailed(const tg_totto *t, const tg_ngrams *g, const tg_ngram *x) {
    unsigned found = 0;
    for (const tg_ngram *n = x;; n = &g->nodes[n->parent]) {
        found += t->in_table[n->word];
        if (!n->parent) break;
    }
    return (double)found / (double)x->order;
}

/* Entailed precision and recall of each order (equations 2 and 5 of the paper). */
static void ngram_scores(const tg_totto *t, const tg_ngrams *g, double *precision, double *recall) {
    double p_sum[ORDERS] = {0}, p_all[ORDERS] = {0}, r_sum[ORDERS] = {0}, r_all[ORDERS] = {0};
    for (size_t i = 1; i <= g->count; i++) {
        const tg_ngram *x = &g->nodes[i];
        unsigned k = x->order - 1;
        double w = entailed(t, g, x), hyp = x->hyp, ref = x->best;
        if (hyp > 0) {
            double in_ref = fmin(1, ref / hyp);
            p_all[k] += hyp;
            p_sum[k] += hyp * (in_ref + (1 - in_ref) * w);
        }
        if (ref > 0) {
            r_all[k] += ref * w;
            r_sum[k] += ref * w * fmin(1, hyp / ref);
        }
    }
    for (int k = 0; k < ORDERS; k++) {
        precision[k] = p_all[k] > 0 ? p_sum[k] / p_all[k] : 0;
        recall[k] = r_all[k] > 0 ? r_sum[k] / r_all[k] : 1;
        if (k && precision[k] == 0) precision[k] = SMOOTHING;
        if (k && recall[k] == 0) recall[k] = SMOOTHING;
    }
}

/* Geometric mean, or `none` when one of them is 0. */
static double geometric(const double *values, double none) {
    double sum = 0;
    for (int k = 0; k < ORDERS; k++) {
        if (values[k] == 0) return none;
        sum += log(values[k]) / ORDERS;
    }
    return exp(sum);
}

static bool against(tg_totto *t, tg_ngrams *g, tg_totto_span ref, double table_recall,
                    tg_parent *out) {
    double precision[ORDERS], recall[ORDERS], mentioned;
    tg_ngrams_forget(g);
    tg_ngrams_add(g, t->ids.v + ref.begin, ref.end - ref.begin, ORDERS, TG_NGRAM_REF);
    tg_ngrams_fold(g);
    if (g->failed || !mention(t, ref, &mentioned)) return false;
    ngram_scores(t, g, precision, recall);
    double lambda = 1 - mentioned, text_recall = geometric(recall, SMOOTHING);
    out->precision = geometric(precision, 0);
    out->recall = exp((1 - lambda) * log(text_recall) + lambda * log(table_recall));
    out->f = 2 * out->precision * out->recall / (out->precision + out->recall + 1e-8);
    return true;
}

tg_status tg_totto_parent(tg_totto *t, tg_parent *out, tg_error *err) {
    tg_ngrams g = {0};
    tg_totto_span p = t->prediction;
    double table_recall = 0;
    tg_ngrams_add(&g, t->ids.v + p.begin, p.end - p.begin, ORDERS, TG_NGRAM_HYP);
    bool ok = mention(t, p, &table_recall);
    if (table_recall == 0) table_recall = SMOOTHING;
    for (size_t k = 0; k < TG_TOTTO_REFERENCES && ok; k++) {
        tg_parent one;
        ok = against(t, &g, t->references[k], table_recall, &one);
        if (ok && (k == 0 || one.f > out->f)) *out = one;
    }
    tg_ngrams_fini(&g);
    return ok ? TG_OK : tg_fail_nomem(err, t->ids.n);
}
