/* text-eval: what the linguistic base makes of texts, for comparison with its originals.
 *
 * Reads one JSON array [operation, rules, text] a line; writes a JSON list of texts a line. Operations: words,
 * sentences, lower (rules "3.7" or "3.10", of NLTK), spacy ("3.0" or "3.8"). */
#include "env-server/metric/pystr.h"
#include "env-server/metric/nltk.h"
#include "env-server/metric/spacy.h"

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
} base;

static tg_status answer(base *b, const char *op, bool old, const char *text, size_t len,
                        tg_nltk_list *out, tg_error *err) {
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
    tg_spacy_work_fini(&b.work);
    for (int i = 0; i < 2; i++) {
        tg_nltk_destroy(&b.nltk[i]);
        tg_spacy_destroy(&b.spacy[i]);
    }
    return st == TG_OK ? 0 : 1;
}
