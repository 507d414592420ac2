/* What `score` reads, and the word splitters, on any bytes: lines of JSON and of text become samples or a message; every
 * splitter ends, and what it finds are pieces of the text; every lexical metric gives a value or a message. The
 * first byte chooses. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "env-server/cli/texts.h"
#include "env-server/metric/bleu_text.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/rows.h"
#include "env-server/metric/spacy.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(tg_status st, const tg_error *err) {
    TG_ASSERT(st == TG_OK || (st == err->status && err->msg[0]));
}

/* A text cut word by word has the words of the text cut as a whole. */
static void same_words(tg_bleu_text *t, tg_bleu_tok tok, bool lower, const char *text, size_t len) {
    tg_words words = {0};
    tg_wids whole = {0}, each = {0};
    TG_ASSERT(tg_bleu_text_cut(t, tok, lower, text, len));
    tg_words_split(&words, t->now.data, t->now.len, &whole);
    TG_ASSERT(tg_bleu_text_words(t, tok, lower, text, len, &words, &each));
    TG_ASSERT(whole.n == each.n && (!each.n || !memcmp(whole.v, each.v, each.n * sizeof *each.v)));
    tg_words_fini(&words);
    tg_wids_fini(&whole);
    tg_wids_fini(&each);
}

/* Tables take long to make: each splitter is made once and kept. */
static void split_words(const char *text, size_t len) {
    static tg_nltk *nltk[2];
    static tg_spacy *spacy[2];
    tg_error err = {0};
    tg_nltk_list list = {0};
    tg_spacy_work work = {0};
    tg_bleu_text cut = {0};
    for (int old = 0; old < 2; old++) {
        if (!nltk[old])
            TG_ASSERT(tg_nltk_create(&nltk[old], old ? TG_NLTK_3_7 : TG_NLTK_CURRENT, &err) ==
                      TG_OK);
        if (!spacy[old])
            TG_ASSERT(tg_spacy_create(&spacy[old], old ? TG_SPACY_3_0 : TG_SPACY_CURRENT, &err) ==
                      TG_OK);
        TG_ASSERT(tg_nltk_words(nltk[old], text, len, &list, &err) == TG_OK);
        TG_ASSERT(tg_nltk_list_lower(&list, &err) == TG_OK);
        TG_ASSERT(tg_nltk_sentences(nltk[old], text, len, &list, &err) == TG_OK);
        TG_ASSERT(list.n <= len);
        TG_ASSERT(tg_spacy_words(spacy[old], text, len, &work, &list, &err) == TG_OK);
        size_t at = 0; /* spaCy's words are the text without white space */
        for (size_t i = 0; i < list.n; i++) {
            const char *found =
                memmem(text + at, len - at, tg_nltk_at(&list, i), list.words[i].len);
            TG_ASSERT(found && list.words[i].len);
            at = (size_t)(found - text) + list.words[i].len;
        }
    }
    for (int tok = 0; tok < TG_TOK_COUNT; tok++)
        for (int lower = 0; lower < 2; lower++)
            same_words(&cut, (tg_bleu_tok)tok, lower, text, len);
    tg_nltk_list_fini(&list);
    tg_spacy_work_fini(&work);
    tg_bleu_text_fini(&cut);
}

/* The lines of the input as samples: JSON, or texts of which every second is a reference. */
static void read_texts(tg_texts *t, const char *text, size_t len, bool json) {
    tg_error err = {0};
    for (size_t at = 0; at < len && t->n < 8;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        need(tg_texts_add_line(t, text + at, n, json, &err), &err);
        at += n + 1;
    }
    for (size_t i = 0; !json && i + 1 < t->n; i++) {
        tg_sample *s = (tg_sample *)t->items[i].sample;
        s->references = &t->items[i + 1].text, s->n_references = 1;
        s->prompt_text = t->items[i + 1].text;
    }
}

static const tg_metric_ops *const metrics[] = {
    &tg_metric_rouge,        &tg_metric_bleu,         &tg_metric_google_bleu, &tg_metric_sacre_bleu,
    &tg_metric_chrf,         &tg_metric_ter,          &tg_metric_rouge_l_max, &tg_metric_cider,
    &tg_metric_sari,         &tg_metric_self_bleu,    &tg_metric_distinct,    &tg_metric_length,
    &tg_metric_diversity,    &tg_metric_parent_totto, &tg_metric_bleu_totto,  &tg_metric_dates,
    &tg_metric_concept_cover};
enum { METRICS = sizeof metrics / sizeof *metrics };

static void open_metric(tg_metric *m, const tg_metric_ops *ops, bool compat, tg_arena *arena) {
    tg_error err = {0};
    void *options = tg_arena_alloc(arena, ops->entry.options_size + 1);
    TG_ASSERT(options);
    TG_ASSERT(tg_opts_read(ops->entry.options, options, NULL, "args", arena, &err) == TG_OK);
    TG_ASSERT(tg_metric_open(m, ops, options, &(tg_open_context){.compat = compat}, &err) == TG_OK);
}

static void score(const tg_texts *t, bool compat) {
    static tg_metric open[METRICS][2]; /* made once and kept */
    static tg_arena options;
    for (size_t i = 0; i < METRICS; i++) {
        tg_arena arena = {0};
        tg_error err = {0};
        tg_metric *m = &open[i][compat];
        tg_metric_out out = {.arena = &arena};
        tg_metric_input in = {.items = t->items, .n = t->n, .split = TG_SPLIT_TEST};
        if (!m->ops) open_metric(m, metrics[i], compat, &options);
        TG_ASSERT(tg_metric_compute(m, &in, &out, &err) == TG_OK && out.n);
        tg_arena_fini(&arena);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > 4096) return 0;
    tg_log_set_level(TG_LOG_ERROR);
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    if (data[0] % 4 == 0) {
        split_words(text, len);
        return 0;
    }
    tg_texts t = {0};
    read_texts(&t, text, len, data[0] % 4 == 1);
    if (t.n) score(&t, data[0] & 4);
    tg_texts_fini(&t);
    return 0;
}
