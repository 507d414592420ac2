/* Each rule is one pass from one array into the other; a rule whose characters do not occur is
 * passed over. The order is NLTK's: later rules see the spaces that earlier ones made.
 *
 * Named after NLTK's lists: starting quotes, punctuation, parentheses, dashes, ending quotes,
 * contractions. */
#include "env-server/metric/treebank.h"

#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <string.h>

typedef struct pass {
    const uint32_t *c; /* source */
    size_t n;
    uint32_t *to; /* destination, with room for 4 n + 16 */
    size_t m;
    tg_nltk_rules rules;
} pass;

typedef struct seen {
    bool ascii[128];
    bool quote;    /* one of « “ ‘ „ » ” ’ */
    bool dash;     /* U+2012 … U+2015 */
    bool contract; /* perhaps a contraction such as cannot */
} seen;

static inline void put(pass *p, uint32_t c) {
    p->to[p->m++] = c;
}

static inline void put_padded(pass *p, uint32_t c) {
    put(p, ' '), put(p, c), put(p, ' ');
}

static bool is_one_of(uint32_t c, const char *set) {
    return c && c < 0x80 && strchr(set, (int)c);
}

/* (?i) of Python's re: also the letters that fold to i and s. lower is an ASCII letter or a mark. */
static bool same_letter(uint32_t c, char lower) {
    if (c < 0x80) return (c >= 'A' && c <= 'Z' ? c + 32 : c) == (unsigned char)lower;
    return (lower == 'i' && (c == 0x130 || c == 0x131)) || (lower == 's' && c == 0x17F) ||
           (lower == 'k' && c == 0x212A);
}

static bool matches(const uint32_t *c, size_t n, const char *word) {
    size_t k = strlen(word);
    if (k > n) return false;
    for (size_t i = 0; i < k; i++)
        if (!same_letter(c[i], word[i])) return false;
    return true;
}

/* \b between c[i-1] and c[i]. */
static bool is_boundary(const uint32_t *c, size_t n, size_t i, tg_nltk_rules rules) {
    bool before = i > 0 && tg_nltk_word(rules, c[i - 1]),
         after = i < n && tg_nltk_word(rules, c[i]);
    return before != after;
}

/* ---- starting quotes --------------------------------------------------------------------------- */

static void open_quotes(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if (c == 0xAB || c == 0x201C || c == 0x2018 || c == 0x201E) {
            put_padded(p, c);
        } else if (c == '`') {
            put(p, ' ');
            for (; i < p->n && p->c[i] == '`'; i++) put(p, '`');
            i--;
            put(p, ' ');
        } else {
            put(p, c);
        }
    }
}

/* ^" becomes ``, then every `` gets its spaces. */
static void backticks(pass *p) {
    size_t i = 0;
    if (p->n && p->c[0] == '"') {
        put(p, ' '), put(p, '`'), put(p, '`'), put(p, ' ');
        i = 1;
    }
    for (; i < p->n; i++) {
        if (p->c[i] == '`' && i + 1 < p->n && p->c[i + 1] == '`') {
            put(p, ' '), put(p, '`'), put(p, '`'), put(p, ' ');
            i++;
        } else {
            put(p, p->c[i]);
        }
    }
}

static void quotes_behind_brackets(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        put(p, p->c[i]);
        if (!is_one_of(p->c[i], " ([{<") || i + 1 >= p->n) continue;
        size_t k = p->c[i + 1] == '"'                                           ? 1
                   : p->c[i + 1] == '\'' && i + 2 < p->n && p->c[i + 2] == '\'' ? 2
                                                                                : 0;
        if (!k) continue;
        put(p, ' '), put(p, '`'), put(p, '`'), put(p, ' ');
        i += k;
    }
}

static bool is_clitic(const uint32_t *c, size_t n, tg_nltk_rules rules) {
    static const char *const clitics[] = {"re", "ve", "ll", "m", "t", "s", "d", "n"};
    for (size_t i = 0; i < sizeof clitics / sizeof *clitics; i++)
        if (matches(c, n, clitics[i]) &&
            (rules == TG_NLTK_3_7 || is_boundary(c, n, strlen(clitics[i]), rules)))
            return true;
    return false;
}

/* 3.7: before a single letter or digit. 3.10: before any word, unless behind one. */
static void apostrophes(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        put(p, p->c[i]);
        if (p->c[i] != '\'' || i + 1 >= p->n || !tg_nltk_word(p->rules, p->c[i + 1])) continue;
        const uint32_t *next = p->c + i + 1;
        size_t left = p->n - i - 1;
        if (p->rules == TG_NLTK_3_7) {
            if (is_clitic(next, left, p->rules) || (left > 1 && tg_nltk_word(p->rules, next[1])))
                continue;
            put(p, ' '), put(p, next[0]);
            i++;
        } else if (!(i > 0 && tg_nltk_word(p->rules, p->c[i - 1])) &&
                   !is_clitic(next, left, p->rules)) {
            put(p, ' ');
        }
    }
}

/* ---- punctuation ------------------------------------------------------------------------------- */

static bool is_closing(uint32_t c, bool wide) {
    return is_one_of(c, "])}>\"'") ||
           (wide && (c == 0xBB || c == 0x201D || c == 0x2019 || c == ' '));
}

/* The final period: one that only closing marks and spaces follow, and no other period precedes.
 * wide: the first of NLTK's two rules, with curly quotes and with a space behind the period. */
static void final_period(pass *p, bool wide) {
    size_t j = p->n;
    while (j > 0 && tg_nltk_space(p->rules, p->c[j - 1])) j--;
    while (j > 0 && is_closing(p->c[j - 1], wide)) j--;
    bool found = j >= 2 && p->c[j - 1] == '.' && p->c[j - 2] != '.';
    size_t keep = found ? j - 1 : p->n;
    memcpy(p->to, p->c, keep * sizeof *p->c);
    p->m = keep;
    if (!found) return;
    put(p, ' '), put(p, '.');
    if (wide) put(p, ' ');
    for (; j < p->n && is_closing(p->c[j], wide); j++) put(p, p->c[j]);
    put(p, ' ');
}

static void commas(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if ((c == ',' || c == ':') && i + 1 < p->n && tg_py_decimal(p->c[i + 1]) < 0) {
            put(p, ' '), put(p, c), put(p, ' '), put(p, p->c[i + 1]);
            i++;
        } else {
            put(p, c);
        }
    }
    /* The last one; a newline at the very end does not count. */
    size_t end = p->m;
    int newline = end > 0 && p->to[end - 1] == '\n' ? 1 : 0;
    for (int k = 0; k <= newline; k++, end--) {
        if (end == 0 || (p->to[end - 1] != ',' && p->to[end - 1] != ':')) continue;
        uint32_t c = p->to[end - 1];
        p->m = end - 1;
        put_padded(p, c);
        if (k) put(p, '\n');
        return;
    }
}

static void ellipses(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (p->c[i] != '.' || i + 1 >= p->n || p->c[i + 1] != '.') {
            put(p, p->c[i]);
            continue;
        }
        put(p, ' ');
        for (; i < p->n && p->c[i] == '.'; i++) put(p, '.');
        i--;
        put(p, ' ');
    }
}

static void symbols(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        if (is_one_of(c, ";@#$%&") || (p->rules == TG_NLTK_CURRENT && c >= 0x2012 && c <= 0x2015))
            put_padded(p, c);
        else
            put(p, c);
    }
}

static void questions(pass *p) {
    for (size_t i = 0; i < p->n; i++)
        if (p->c[i] == '?' || p->c[i] == '!')
            put_padded(p, p->c[i]);
        else
            put(p, p->c[i]);
}

/* ([^'])'  with a space behind it. */
static void single_quotes(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        put(p, p->c[i]);
        if (p->c[i] == '\'' || i + 2 >= p->n || p->c[i + 1] != '\'' || p->c[i + 2] != ' ') continue;
        put(p, ' '), put(p, '\''), put(p, ' ');
        i += 2;
    }
}

/* Stars, brackets, double dashes; a space around the whole; closing and double quotes; and (3.10)
 * every run of spaces becomes one. These rules do not touch each other. */
static void brackets_dashes_quotes(pass *p) {
    put(p, ' ');
    for (size_t i = 0; i < p->n; i++) {
        uint32_t c = p->c[i];
        bool twice = (c == '-' || c == '\'') && i + 1 < p->n && p->c[i + 1] == c;
        if (is_one_of(c, "*][(){}<>") || c == 0xBB || c == 0x201D || c == 0x2019) {
            put_padded(p, c);
        } else if (twice || c == '"') {
            uint32_t mark = c == '"' ? '\'' : c;
            put(p, ' '), put(p, mark), put(p, mark), put(p, ' ');
            i += twice;
        } else {
            put(p, c);
        }
    }
    put(p, ' ');
}

static void collapse_spaces(pass *p) {
    for (size_t i = 0; i < p->n; i++) {
        bool space = tg_nltk_space(p->rules, p->c[i]);
        if (!space)
            put(p, p->c[i]);
        else if (!p->m || p->to[p->m - 1] != ' ')
            put(p, ' ');
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
static void endings(pass *p, const char *const *list, size_t n_list) {
    for (size_t i = 0; i < p->n; i++) {
        put(p, p->c[i]);
        if (p->c[i] == '\'' || p->c[i] == ' ') continue;
        const uint32_t *next = p->c + i + 1;
        size_t left = p->n - i - 1;
        for (size_t k = 0; k < n_list; k++) {
            if (!is_exact(next, left, list[k])) continue;
            size_t len = strlen(list[k]);
            put(p, ' ');
            for (size_t j = 0; j < len; j++) put(p, next[j]);
            i += len;
            break;
        }
    }
}

static void short_endings(pass *p) {
    static const char *const list[] = {"'s ", "'S ", "'m ", "'M ", "'d ", "'D ", "' "};
    endings(p, list, sizeof list / sizeof *list);
}

static void long_endings(pass *p) {
    static const char *const list[] = {"'ll ", "'LL ", "'re ", "'RE ",
                                       "'ve ", "'VE ", "n't ", "N'T "};
    endings(p, list, sizeof list / sizeof *list);
}

/* ---- contractions ------------------------------------------------------------------------------ */

typedef struct contraction {
    const char *word;
    unsigned first; /* length of the first part */
    char kind;      /* 'b': word boundaries; 's': a space follows; 't': a space precedes */
} contraction;

static const contraction contractions[] = {
    {"cannot", 3, 'b'}, {"d'ye", 1, 'b'},   {"gimme", 3, 'b'}, {"gonna", 3, 'b'}, {"gotta", 3, 'b'},
    {"lemme", 3, 'b'},  {"more'n", 4, 'b'}, {"wanna", 3, 's'}, {"'tis", 2, 't'},  {"'twas", 2, 't'},
};
enum { N_CONTRACTIONS = sizeof contractions / sizeof *contractions };

/* These expressions are run by re in either version. */
static bool is_contraction(const pass *p, size_t i, const contraction *k) {
    const uint32_t *c = p->c;
    size_t at = k->kind == 't' ? i + 1 : i, end = at + strlen(k->word);
    if (end > p->n || !matches(c + at, p->n - at, k->word)) return false;
    if (k->kind == 't') return c[i] == ' ' && is_boundary(c, p->n, end, TG_NLTK_3_7);
    if (!is_boundary(c, p->n, i, TG_NLTK_3_7)) return false;
    return k->kind == 's' ? end < p->n && tg_py_space(c[end])
                          : is_boundary(c, p->n, end, TG_NLTK_3_7);
}

static void split_contraction(pass *p, const contraction *k) {
    for (size_t i = 0; i < p->n; i++) {
        if (!is_contraction(p, i, k)) {
            put(p, p->c[i]);
            continue;
        }
        size_t len = strlen(k->word);
        i += k->kind == 't';
        put(p, ' ');
        for (size_t j = 0; j < len; j++) {
            if (j == k->first) put(p, ' ');
            put(p, p->c[i + j]);
        }
        put(p, ' ');
        i += len - 1;
    }
}

/* ---- all of them ------------------------------------------------------------------------------- */

static void look(const tg_points *t, seen *s) {
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < t->n; i++) {
        uint32_t c = t->c[i];
        if (c < 0x80)
            s->ascii[c] = true;
        else if (c == 0xAB || c == 0xBB || (c >= 0x2018 && c <= 0x201E))
            s->quote = true;
        else if (c >= 0x2012 && c <= 0x2015)
            s->dash = true;
        for (size_t k = 0; !s->contract && k < N_CONTRACTIONS; k++)
            s->contract = same_letter(c, contractions[k].word[0]) &&
                          matches(t->c + i, t->n - i, contractions[k].word);
    }
}

static bool any(const seen *s, const char *set) {
    for (; *set; set++)
        if (s->ascii[(unsigned char)*set]) return true;
    return false;
}

static bool begin(pass *p, tg_points work[2], tg_nltk_rules rules) {
    if (!tg_points_reserve(&work[1], 4 * work[0].n + 16)) return false;
    *p = (pass){.c = work[0].c, .n = work[0].n, .to = work[1].c, .rules = rules};
    return true;
}

static void end(const pass *p, tg_points work[2]) {
    tg_points old = work[0];
    work[0] = work[1];
    work[0].n = p->m;
    work[1] = old;
}

#define RUN(condition, call)                                                                       \
    do {                                                                                           \
        if (condition) {                                                                           \
            pass p;                                                                                \
            if (!begin(&p, work, rules)) return false;                                             \
            call;                                                                                  \
            end(&p, work);                                                                         \
        }                                                                                          \
    } while (0)

bool tg_treebank(tg_points work[2], tg_nltk_rules rules) {
    seen s;
    look(&work[0], &s);
    bool period = s.ascii['.'], quote = s.ascii['\''];
    RUN(s.quote || s.ascii['`'], open_quotes(&p));
    RUN(any(&s, "\"`"), backticks(&p));
    RUN(any(&s, "\"'"), quotes_behind_brackets(&p));
    RUN(quote, apostrophes(&p));
    RUN(period, final_period(&p, true));
    RUN(any(&s, ",:"), commas(&p));
    RUN(period, ellipses(&p));
    RUN(any(&s, ";@#$%&") || s.dash, symbols(&p));
    RUN(period, final_period(&p, false));
    RUN(any(&s, "?!"), questions(&p));
    RUN(quote, single_quotes(&p));
    RUN(true, brackets_dashes_quotes(&p));
    bool apostrophe = quote || s.ascii['"'];
    RUN(rules == TG_NLTK_CURRENT && apostrophe, collapse_spaces(&p));
    RUN(apostrophe, short_endings(&p));
    RUN(apostrophe, long_endings(&p));
    for (size_t k = 0; s.contract && k < N_CONTRACTIONS; k++)
        RUN(true, split_contraction(&p, &contractions[k]));
    return true;
}
