/* Base forms of a word: morphy's rules, and the exceptions that the database lists. */
#include "env-server/metric/wordnet_impl.h"

#include <string.h>

static const tg_wordnet_rule rules_of[TG_WORDNET_N_POS][10] = {
    {{"s", ""},
     {"ses", "s"},
     {"ves", "f"},
     {"xes", "x"},
     {"zes", "z"},
     {"ches", "ch"},
     {"shes", "sh"},
     {"men", "man"},
     {"ies", "y"}},
    {{"s", ""},
     {"ies", "y"},
     {"es", "e"},
     {"es", ""},
     {"ed", "e"},
     {"ed", ""},
     {"ing", "e"},
     {"ing", ""}},
    {{"er", ""}, {"est", ""}, {"er", "e"}, {"est", "e"}},
    {{0}},
};

void tg_wordnet_add_form(tg_wordnet_forms *f, const char *a, size_t a_len, const char *b,
                         size_t b_len) {
    char text[TG_WORDNET_MAX_WORD + 1];
    if (a_len + b_len > TG_WORDNET_MAX_WORD || f->n == TG_WORDNET_MAX_FORMS) return;
    memcpy(text, a, a_len);
    memcpy(text + a_len, b, b_len);
    for (size_t i = 0; i < f->n; i++)
        if (f->len[i] == a_len + b_len && !memcmp(f->text[i], text, f->len[i])) return;
    memcpy(f->text[f->n], text, a_len + b_len);
    f->len[f->n++] = a_len + b_len;
}

void tg_wordnet_inflect(const char *word, size_t len, size_t pos, tg_wordnet_forms *out) {
    for (const tg_wordnet_rule *r = rules_of[pos]; r->old; r++) {
        size_t n = strlen(r->old);
        if (len >= n && !memcmp(word + len - n, r->old, n))
            tg_wordnet_add_form(out, word, len - n, r->new, strlen(r->new));
    }
}

bool tg_wordnet_irregular_forms(const tg_wordnet *w, size_t pos, const char *word, size_t len,
                                tg_wordnet_forms *out) {
    const tg_wordnet_table *t = &w->exceptions[pos];
    size_t at, end;
    if (!tg_wordnet_find(t, word, len, &at, &end)) return false;
    for (at += len;;) {
        while (at < end && t->map.data[at] == ' ') at++;
        if (at >= end) return true;
        size_t stop = tg_wordnet_word_end(&t->map, at, end);
        tg_wordnet_add_form(out, (const char *)t->map.data + at, stop - at, "", 0);
        at = stop;
    }
}
