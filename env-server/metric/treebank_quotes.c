/* The rules of quotes: those that open, apostrophes, and what is cut off behind one. */
#include "env-server/metric/treebank_impl.h"

/* ---- starting quotes --------------------------------------------------------------------------- */

void tg_treebank_open_quotes(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if (c == 0xAB || c == 0x201C || c == 0x2018 || c == 0x201E) {
            tg_treebank_put_padded(p, c);
        } else if (c == '`') {
            tg_treebank_put(p, ' ');
            for (; i < p->n && p->c[i] == '`'; i++) tg_treebank_put(p, '`');
            i--;
            tg_treebank_put(p, ' ');
        } else {
            tg_treebank_put(p, c);
        }
    }
}

void tg_treebank_backticks(tg_treebank_pass *p) {
    size_t i = 0;
    if (p->n && p->c[0] == '"') {
        tg_treebank_put(p, ' '), tg_treebank_put(p, '`'), tg_treebank_put(p, '`'),
            tg_treebank_put(p, ' ');
        i = 1;
    }
    for (; i < p->n; i++) {
        if (p->c[i] == '`' && i + 1 < p->n && p->c[i + 1] == '`') {
            tg_treebank_put(p, ' '), tg_treebank_put(p, '`'), tg_treebank_put(p, '`'),
                tg_treebank_put(p, ' ');
            i++;
        } else {
            tg_treebank_put(p, p->c[i]);
        }
    }
}

void tg_treebank_quotes_behind_brackets(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        tg_treebank_put(p, p->c[i]);
        if (!tg_treebank_is_one_of(p->c[i], " ([{<") || i + 1 >= p->n) continue;
        size_t k = p->c[i + 1] == '"'                                           ? 1
                   : p->c[i + 1] == '\'' && i + 2 < p->n && p->c[i + 2] == '\'' ? 2
                                                                                : 0;
        if (!k) continue;
        tg_treebank_put(p, ' '), tg_treebank_put(p, '`'), tg_treebank_put(p, '`'),
            tg_treebank_put(p, ' ');
        i += k;
    }
}

static bool is_clitic(const uint32_t *c, size_t n, tg_nltk_rules rules) {
    static const char *const clitics[] = {"re", "ve", "ll", "m", "t", "s", "d", "n"};
    for (size_t i = 0; i < sizeof clitics / sizeof *clitics; i++)
        if (tg_treebank_matches(c, n, clitics[i]) &&
            (rules == TG_NLTK_3_7 || tg_treebank_is_boundary(c, n, strlen(clitics[i]), rules)))
            return true;
    return false;
}

/* 3.7: before a single letter or digit. 3.10: before any word, unless behind one. */
void tg_treebank_apostrophes(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        tg_treebank_put(p, p->c[i]);
        if (p->c[i] != '\'' || i + 1 >= p->n || !tg_nltk_word(p->rules, p->c[i + 1])) continue;
        const uint32_t *next = p->c + i + 1;
        size_t left = p->n - i - 1;
        if (p->rules == TG_NLTK_3_7) {
            if (is_clitic(next, left, p->rules) || (left > 1 && tg_nltk_word(p->rules, next[1])))
                continue;
            tg_treebank_put(p, ' '), tg_treebank_put(p, next[0]);
            i++;
        } else if (!(i > 0 && tg_nltk_word(p->rules, p->c[i - 1])) &&
                   !is_clitic(next, left, p->rules)) {
            tg_treebank_put(p, ' ');
        }
    }
}

void tg_treebank_single_quotes(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        tg_treebank_put(p, p->c[i]);
        if (p->c[i] == '\'' || i + 2 >= p->n || p->c[i + 1] != '\'' || p->c[i + 2] != ' ') continue;
        tg_treebank_put(p, ' '), tg_treebank_put(p, '\''), tg_treebank_put(p, ' ');
        i += 2;
    }
}

/* ---- ending quotes ----------------------------------------------------------------------------- */

static bool is_exact(const uint32_t *c, size_t n, const char *word) {
    size_t k = strlen(word);
    if (k > n) return false;
    for (size_t i = 0; i < k; i++)
        if (c[i] != (unsigned char)word[i]) return false;
    return true;
}

/* A character that is neither apostrophe nor space, one of the endings, a space. */
static void endings(tg_treebank_pass *p, const char *const *list, size_t n_list) {
    for (size_t i = 0; i < p->n; i++) {
        tg_treebank_put(p, p->c[i]);
        if (p->c[i] == '\'' || p->c[i] == ' ') continue;
        const uint32_t *next = p->c + i + 1;
        size_t left = p->n - i - 1;
        for (size_t k = 0; k < n_list; k++) {
            if (!is_exact(next, left, list[k])) continue;
            size_t len = strlen(list[k]);
            tg_treebank_put(p, ' ');
            for (size_t j = 0; j < len; j++) tg_treebank_put(p, next[j]);
            i += len;
            break;
        }
    }
}

void tg_treebank_short_endings(tg_treebank_pass *p) {
    static const char *const list[] = {"'s ", "'S ", "'m ", "'M ", "'d ", "'D ", "' "};
    endings(p, list, sizeof list / sizeof *list);
}

void tg_treebank_long_endings(tg_treebank_pass *p) {
    static const char *const list[] = {"'ll ", "'LL ", "'re ", "'RE ",
                                       "'ve ", "'VE ", "n't ", "N'T "};
    endings(p, list, sizeof list / sizeof *list);
}
