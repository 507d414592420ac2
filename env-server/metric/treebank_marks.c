/* The rules of punctuation, parentheses and dashes. */
#include "env-server/metric/treebank_impl.h"

#include "env-server/reward/pytext.h"

static bool is_closing(uint32_t c, bool wide) {
    return tg_treebank_is_one_of(c, "])}>\"'") ||
           (wide && (c == 0xBB || c == 0x201D || c == 0x2019 || c == ' '));
}

void tg_treebank_final_period(tg_treebank_pass *p, bool wide) {
    size_t j = p->n;
    while (j > 0 && tg_nltk_space(p->rules, p->c[j - 1])) j--;
    while (j > 0 && is_closing(p->c[j - 1], wide)) j--;
    bool found = j >= 2 && p->c[j - 1] == '.' && p->c[j - 2] != '.';
    size_t keep = found ? j - 1 : p->n;
    memcpy(p->to, p->c, keep * sizeof *p->c);
    p->m = keep;
    if (!found) return;
    tg_treebank_put(p, ' '), tg_treebank_put(p, '.');
    if (wide) tg_treebank_put(p, ' ');
    for (; j < p->n && is_closing(p->c[j], wide); j++) tg_treebank_put(p, p->c[j]);
    tg_treebank_put(p, ' ');
}

void tg_treebank_commas(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if ((c == ',' || c == ':') && i + 1 < p->n && tg_py_decimal(p->c[i + 1]) < 0) {
            tg_treebank_put(p, ' '), tg_treebank_put(p, c), tg_treebank_put(p, ' '),
                tg_treebank_put(p, p->c[i + 1]);
            i++;
        } else {
            tg_treebank_put(p, c);
        }
    }
    /* The last one; a newline at the very end does not count. */
    size_t end = p->m;
    int newline = end > 0 && p->to[end - 1] == '\n' ? 1 : 0;
    for (int k = 0; k <= newline; k++, end--) {
        if (end == 0 || (p->to[end - 1] != ',' && p->to[end - 1] != ':')) continue;
        uint32_t c = p->to[end - 1];
        p->m = end - 1;
        tg_treebank_put_padded(p, c);
        if (k) tg_treebank_put(p, '\n');
        return;
    }
}

void tg_treebank_ellipses(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->c[i] != '.' || i + 1 >= p->n || p->c[i + 1] != '.') {
            tg_treebank_put(p, p->c[i]);
            continue;
        }
        tg_treebank_put(p, ' ');
        for (; i < p->n && p->c[i] == '.'; i++) tg_treebank_put(p, '.');
        i--;
        tg_treebank_put(p, ' ');
    }
}

void tg_treebank_symbols(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if (tg_treebank_is_one_of(c, ";@#$%&") ||
            (p->rules == TG_NLTK_CURRENT && c >= 0x2012 && c <= 0x2015))
            tg_treebank_put_padded(p, c);
        else
            tg_treebank_put(p, c);
    }
}

void tg_treebank_questions(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++)
        if (p->c[i] == '?' || p->c[i] == '!')
            tg_treebank_put_padded(p, p->c[i]);
        else
            tg_treebank_put(p, p->c[i]);
}

void tg_treebank_brackets_dashes_quotes(tg_treebank_pass *p) {
    tg_treebank_put(p, ' ');
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        bool twice = (c == '-' || c == '\'') && i + 1 < p->n && p->c[i + 1] == c;
        if (tg_treebank_is_one_of(c, "*][(){}<>") || c == 0xBB || c == 0x201D || c == 0x2019) {
            tg_treebank_put_padded(p, c);
        } else if (twice || c == '"') {
            uint32_t mark = c == '"' ? '\'' : c;
            tg_treebank_put(p, ' '), tg_treebank_put(p, mark), tg_treebank_put(p, mark),
                tg_treebank_put(p, ' ');
            i += twice;
        } else {
            tg_treebank_put(p, c);
        }
    }
    tg_treebank_put(p, ' ');
}

void tg_treebank_collapse_spaces(tg_treebank_pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        bool space = tg_nltk_space(p->rules, p->c[i]);
        if (!space)
            tg_treebank_put(p, p->c[i]);
        else if (!p->m || p->to[p->m - 1] != ' ')
            tg_treebank_put(p, ' ');
    }
}
