/* The Penn Treebank rules one after the other, as far as a sentence has their characters. Named after NLTK's lists: starting
 * quotes, punctuation, parentheses, dashes, ending quotes, contractions. */
#include "env-server/metric/treebank_impl.h"

typedef struct seen {
    bool ascii[128];
    bool quote;    /* one of « “ ‘ „ » ” ’ */
    bool dash;     /* U+2012 … U+2015 */
    bool contract; /* perhaps a contraction such as cannot */
} seen;

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
        for (size_t k = 0; !s->contract && k < TG_TREEBANK_CONTRACTIONS; k++)
            s->contract = tg_treebank_same_letter(c, tg_treebank_contractions[k].word[0]) &&
                          tg_treebank_matches(t->c + i, t->n - i, tg_treebank_contractions[k].word);
    }
}

static bool any(const seen *s, const char *set) {
    for (; *set; set++)
        if (s->ascii[(unsigned char)*set]) return true;
    return false;
}

static bool begin(tg_treebank_pass *p, tg_points work[2], tg_nltk_rules rules) {
    if (!tg_points_reserve(&work[1], 4 * work[0].n + 16)) return false;
    *p = (tg_treebank_pass){.c = work[0].c, .n = work[0].n, .to = work[1].c, .rules = rules};
    return true;
}

static void end(const tg_treebank_pass *p, tg_points work[2]) {
    tg_points old = work[0];
    work[0] = work[1];
    work[0].n = p->m;
    work[1] = old;
}

#define RUN(condition, call)                                                                       \
    do {                                                                                           \
        if (condition) {                                                                           \
            tg_treebank_pass p;                                                                    \
            if (!begin(&p, work, rules)) return false;                                             \
            call;                                                                                  \
            end(&p, work);                                                                         \
        }                                                                                          \
    } while (0)

bool tg_treebank(tg_points work[2], tg_nltk_rules rules) {
    seen s;
    look(&work[0], &s);
    bool period = s.ascii['.'], quote = s.ascii['\''];
    RUN(s.quote || s.ascii['`'], tg_treebank_open_quotes(&p));
    RUN(any(&s, "\"`"), tg_treebank_backticks(&p));
    RUN(any(&s, "\"'"), tg_treebank_quotes_behind_brackets(&p));
    RUN(quote, tg_treebank_apostrophes(&p));
    RUN(period, tg_treebank_final_period(&p, true));
    RUN(any(&s, ",:"), tg_treebank_commas(&p));
    RUN(period, tg_treebank_ellipses(&p));
    RUN(any(&s, ";@#$%&") || s.dash, tg_treebank_symbols(&p));
    RUN(period, tg_treebank_final_period(&p, false));
    RUN(any(&s, "?!"), tg_treebank_questions(&p));
    RUN(quote, tg_treebank_single_quotes(&p));
    RUN(true, tg_treebank_brackets_dashes_quotes(&p));
    bool apostrophe = quote || s.ascii['"'];
    RUN(rules == TG_NLTK_CURRENT && apostrophe, tg_treebank_collapse_spaces(&p));
    RUN(apostrophe, tg_treebank_short_endings(&p));
    RUN(apostrophe, tg_treebank_long_endings(&p));
    for (size_t k = 0; s.contract && k < TG_TREEBANK_CONTRACTIONS; k++)
        RUN(true, tg_treebank_split_contraction(&p, &tg_treebank_contractions[k]));
    return true;
}
