/* SARI. N-grams of the source, the text and all references are nodes of one trie: hyp counts the text, ref the
 * references together, and the source has an array of its own. */
#include "env-server/metric/sari.h"

#include "common/base/alloc.h"
#include "env-server/metric/items.h"
#include "env-server/metric/rows.h"

#include <string.h>

enum { ORDERS = 4 };

/* A text without words is one empty word to the original. */
static bool read_words(tg_sari *s, const char *text, size_t len) {
    tg_wids_reset(&s->ids);
    /* 13a joins what a hyphen at the end of a line divides; at the end of the text BLEU has cut off the newline before. */
    size_t n = tg_bleu_text_rstrip(text, len);
    if (n && n < len && text[n - 1] == '-' && text[n] == '\n') len = n - 1;
    bool ok = tg_bleu_text_words(&s->text, TG_TOK_13A, true, text, len, &s->words, &s->ids);
    if (ok && !s->ids.n) tg_wids_push(&s->ids, tg_words_id(&s->words, "", 0));
    return ok && !s->ids.failed && !s->words.failed;
}

static double f1(double precision, double recall) {
    return precision > 0 || recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

typedef struct sums { /* of one order */
    double keep_precision, keep_good, keep_all, n_keep;
    double delete_precision, n_delete;
    double n_add, n_add_good, n_add_all;
} sums;

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static void count(sums *o, uint64_t source, uint64_t text, uint64_t refs, uint64_t n_refs) {
    uint64_t s = source * n_refs, t = text * n_refs, keep = least(s, t), gone = less(s, t);
    uint64_t kept = least(keep, refs), rightly = less(gone, refs), all = least(s, refs);
    if (keep) o->n_keep++;
    if (kept) o->keep_precision += (double)kept / (double)keep;
    o->keep_good += (double)kept;
    o->keep_all += (double)all;
    if (gone) o->n_delete++;
    if (rightly) o->delete_precision += (double)rightly / (double)gone;
    if (source) return;
    if (text) o->n_add++;
    if (refs) o->n_add_all++;
    if (text && refs) o->n_add_good++;
}

static void score_order(const sums *o, double parts[3]) {
    double p = o->n_keep > 0 ? o->keep_precision / o->n_keep : 1;
    double r = o->keep_all > 0 ? o->keep_good / o->keep_all : 1;
    parts[0] += f1(p, r);
    parts[1] += o->n_delete > 0 ? o->delete_precision / o->n_delete : 1;
    p = o->n_add > 0 ? o->n_add_good / o->n_add : 1;
    r = o->n_add_all > 0 ? o->n_add_good / o->n_add_all : 1;
    parts[2] += f1(p, r);
}

static bool count_source(tg_sari *s) {
    if (s->cap < s->grams.cap) {
        uint32_t *more = tg_realloc_array(s->source, s->grams.cap, sizeof *more);
        if (!more) return false;
        s->source = more, s->cap = s->grams.cap;
    }
    for (size_t i = 1; i <= s->grams.count; i++) s->source[i] = s->grams.nodes[i].hyp;
    for (size_t i = 1; i <= s->grams.count; i++) s->grams.nodes[i].hyp = 0;
    return true;
}

tg_status tg_sari_score(tg_sari *s, const char *text, size_t len, const tg_sample *sample,
                        double *out, tg_error *err) {
    tg_words_reset(&s->words);
    tg_ngrams_reset(&s->grams);
    bool ok = read_words(s, sample->prompt_text, strlen(sample->prompt_text));
    tg_ngrams_add(&s->grams, s->ids.v, s->ids.n, ORDERS, TG_NGRAM_HYP);
    size_t n_source = s->grams.count;
    ok = ok && !s->grams.failed && count_source(s) && read_words(s, text, len);
    if (ok) tg_ngrams_add(&s->grams, s->ids.v, s->ids.n, ORDERS, TG_NGRAM_HYP);
    for (size_t i = 0; i < sample->n_references && ok; i++) {
        ok = read_words(s, sample->references[i], strlen(sample->references[i]));
        if (ok) tg_ngrams_add(&s->grams, s->ids.v, s->ids.n, ORDERS, TG_NGRAM_REF);
    }
    if (!ok || s->grams.failed) return tg_fail_nomem(err, len);
    sums orders[ORDERS] = {{0}};
    double parts[3] = {0};
    for (size_t i = 1; i <= s->grams.count; i++) {
        const tg_ngram *g = &s->grams.nodes[i];
        count(&orders[g->order - 1], i <= n_source ? s->source[i] : 0, g->hyp, g->ref,
              sample->n_references);
    }
    for (int k = 0; k < ORDERS; k++) score_order(&orders[k], parts);
    *out = 100 * ((parts[0] / ORDERS + parts[1] / ORDERS + parts[2] / ORDERS) / 3);
    return TG_OK;
}

void tg_sari_fini(tg_sari *s) {
    tg_words_fini(&s->words);
    tg_wids_fini(&s->ids);
    tg_bleu_text_fini(&s->text);
    tg_ngrams_fini(&s->grams);
    tg_free(s->source);
    memset(s, 0, sizeof *s);
}

static const tg_opt no_options[] = {TG_OPT_END};

static tg_status one(void *work, const void *state, const tg_metric_item *item, void *out,
                     tg_error *err) {
    (void)state;
    return tg_sari_score(work, item->text, item->text_len, item->sample, out, err);
}

static void end(void *work) {
    tg_sari_fini(work);
}

static tg_status compute(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err) {
    static const tg_item_loop loop = {sizeof(tg_sari), sizeof(double), NULL, one, end};
    tg_status st = tg_items_need_references(in, err);
    return st == TG_OK ? tg_items_mean(in, &loop, state, "lexical/sari", true, out, err) : st;
}

const tg_metric_ops tg_metric_sari = {
    .entry = {.name = "sari",
              .summary = "SARI of a text against its prompt and references, between 0 and 100.",
              .options = no_options,
              .built = true},
    .compute = compute,
};
