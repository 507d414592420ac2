/* text-eval: what the linguistic base makes of texts, for comparison with its originals.
 *
 * Reads one JSON array [operation, rules, text] a line; writes a JSON list of texts a line. Operations: words,
 * sentences, lower (rules "3.7" or "3.10", of NLTK), spacy ("3.0" or "3.8"), spice (propositions as
 * "object", "object|attribute" or "object|object|relation"), spice_counts (of a JSON list: a text and references). */
#include "env-server/metric/pystr.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/spacy.h"
#include "env-server/metric/spice.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_list(const tg_nltk_list *l) {
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++)
        json_array_append_new(list, json_stringn(tg_nltk_at(l, i), l->words[i].len));
    char *text = json_dumps(list, JSON_COMPACT);
    puts(text);
    free(text);
    json_decref(list);
}

typedef struct base {
    tg_nltk *nltk[2]; /* the newer rules first */
    tg_spacy *spacy[2];
    tg_spacy_work work;
    tg_spice spice;
} base;

static tg_status propositions(const tg_spice *s, const char *text, size_t len, tg_nltk_list *out,
                              tg_error *err) {
    tg_arena arena = {0};
    tg_spice_tuples t = {.arena = &arena};
    tg_status st = tg_spice_read(s, text, len, &t, err);
    tg_nltk_list_clear(out);
    for (size_t i = 0; i < t.n && st == TG_OK; i++) {
        tg_buf line = {0};
        for (int k = 0; k < 3 && t.v[i].part[k]; k++)
            tg_buf_printf(&line, "%s%s", k ? "|" : "", t.v[i].part[k]);
        st = tg_nltk_list_add(out, line.data, line.len, err);
        tg_buf_fini(&line);
    }
    tg_arena_fini(&arena);
    return st;
}

/* text: a JSON list, a text and its references. Matched, own and reference propositions. */
static tg_status counts(const tg_spice *s, const char *text, size_t len, tg_nltk_list *out,
                        tg_error *err) {
    json_t *list = json_loadb(text, len, 0, NULL);
    const char *refs[64];
    tg_sample sample = {.references = refs};
    tg_spice_score score = {0};
    const json_t *own = json_array_get(list, 0);
    for (size_t i = 1; i < json_array_size(list) && i <= 64; i++)
        refs[sample.n_references++] = json_string_value(json_array_get(list, i));
    tg_status st =
        tg_spice_sample(s, json_string_value(own), json_string_length(own), &sample, &score, err);
    const size_t all[] = {score.matched, score.test, score.ref};
    tg_nltk_list_clear(out);
    for (int k = 0; k < 3 && st == TG_OK; k++) {
        char number[24];
        int n = snprintf(number, sizeof number, "%zu", all[k]);
        st = tg_nltk_list_add(out, number, (size_t)n, err);
    }
    json_decref(list);
    return st;
}

static tg_status answer(base *b, const char *op, bool old, const char *text, size_t len,
                        tg_nltk_list *out, tg_error *err) {
    if (!strcmp(op, "spice_counts")) return counts(&b->spice, text, len, out, err);
    if (!strcmp(op, "spice")) return propositions(&b->spice, text, len, out, err);
    if (!strcmp(op, "spacy")) return tg_spacy_words(b->spacy[old], text, len, &b->work, out, err);
    if (!strcmp(op, "words")) return tg_nltk_words(b->nltk[old], text, len, out, err);
    if (!strcmp(op, "sentences")) return tg_nltk_sentences(b->nltk[old], text, len, out, err);
    if (strcmp(op, "lower") != 0) return tg_fail(err, TG_DATA, "unknown operation %s", op);
    tg_buf lower = {0};
    tg_py_lower(&lower, text, len);
    tg_nltk_list_clear(out);
    tg_status st = tg_nltk_list_add(out, lower.data ? lower.data : "", lower.len, err);
    tg_buf_fini(&lower);
    return st;
}

int main(void) {
    base b = {0};
    tg_nltk_list out = {0};
    tg_error err = {0};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    tg_status st = tg_nltk_create(&b.nltk[0], TG_NLTK_CURRENT, &err);
    if (st == TG_OK) st = tg_nltk_create(&b.nltk[1], TG_NLTK_3_7, &err);
    if (st == TG_OK) st = tg_spacy_create(&b.spacy[0], TG_SPACY_CURRENT, &err);
    if (st == TG_OK) st = tg_spacy_create(&b.spacy[1], TG_SPACY_3_0, &err);
    if (st == TG_OK) st = tg_spice_open(&b.spice, false, &err);
    while (st == TG_OK && (n = getline(&line, &cap, stdin)) > 0) {
        json_t *q = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        const char *op = json_string_value(json_array_get(q, 0)),
                   *version = json_string_value(json_array_get(q, 1));
        const json_t *text = json_array_get(q, 2);
        if (!op || !version || !json_is_string(text))
            st = tg_fail(&err, TG_DATA, "not a question: %s", line);
        else
            st = answer(&b, op, !strcmp(version, "3.7") || !strcmp(version, "3.0"),
                        json_string_value(text), json_string_length(text), &out, &err);
        if (st == TG_OK) print_list(&out);
        json_decref(q);
    }
    if (st != TG_OK) fprintf(stderr, "text-eval: %s\n", err.msg);
    free(line);
    tg_nltk_list_fini(&out);
    tg_spice_close(&b.spice);
    tg_spacy_work_fini(&b.work);
    for (int i = 0; i < 2; i++) {
        tg_nltk_destroy(&b.nltk[i]);
        tg_spacy_destroy(&b.spacy[i]);
    }
    return st == TG_OK ? 0 : 1;
}
