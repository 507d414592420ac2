/* The synonyms and the synsets of a word, found through its base forms as NLTK and METEOR look for them. */
#include "common/base/check.h"
#include "env-server/metric/wordnet_impl.h"

#include <string.h>

typedef struct search {
    const tg_wordnet *w;
    size_t pos;
    tg_wordnet_visit *visit;
    tg_wordnet_synset *number; /* or NULL: gets the synsets' numbers in place of names */
    void *arg;
    bool ended;
} search;

/* offset lex_filenum ss_type w_cnt word lex_id [word lex_id …] … */
static void visit_synset(search *s, size_t offset) {
    const tg_filemap *m = &s->w->data[s->pos];
    size_t at = offset, n;
    if (offset >= m->len) return;
    if (s->number) {
        s->number(s->arg, (uint32_t)(offset << 2 | s->pos));
        return;
    }
    TG_ASSERT(s->visit);
    size_t end = tg_wordnet_line_end(m, offset);
    if (!tg_wordnet_skip_words(m, &at, end, 3) || !tg_wordnet_number_at(m, &at, end, 16, &n))
        return;
    for (; n && !s->ended; n--) {
        while (at < end && m->data[at] == ' ') at++;
        size_t begin = at;
        at = tg_wordnet_word_end(m, at, end);
        const char *name = (const char *)m->data + begin;
        size_t len = at - begin;
        const char *mark =
            memchr(name, '(', len); /* syntactic marker of an adjective: galore(ip) */
        if (mark && len && name[len - 1] == ')') len = (size_t)(mark - name);
        if (!memchr(name, '_', len)) s->ended = !s->visit(s->arg, name, len);
        if (!tg_wordnet_skip_words(m, &at, end, 1)) return;
    }
}

/* lemma pos synset_cnt p_cnt [ptr_symbol…] sense_cnt tagsense_cnt offset [offset …]. True: the form
 * is in the database. */
static bool visit_form(search *s, const char *form, size_t len) {
    const tg_wordnet_table *t = &s->w->index[s->pos];
    size_t at, end, n, n_pointers;
    if (!tg_wordnet_find(t, form, len, &at, &end)) return false;
    if (!tg_wordnet_skip_words(&t->map, &at, end, 2) ||
        !tg_wordnet_number_at(&t->map, &at, end, 10, &n) ||
        !tg_wordnet_number_at(&t->map, &at, end, 10, &n_pointers) ||
        !tg_wordnet_skip_words(&t->map, &at, end, n_pointers + 2))
        return true;
    for (size_t offset; n && !s->ended && tg_wordnet_number_at(&t->map, &at, end, 10, &offset); n--)
        visit_synset(s, offset);
    return true;
}

static bool visit_forms(search *s, const tg_wordnet_forms *f) {
    bool found = false;
    for (size_t i = 0; i < f->n && !s->ended; i++) found |= visit_form(s, f->text[i], f->len[i]);
    return found;
}

static void search_pos(search *s, const char *word, size_t len, tg_wordnet_forms *a,
                       tg_wordnet_forms *b) {
    a->n = 0;
    tg_wordnet_add_form(a, word, len, "", 0);
    if (tg_wordnet_irregular_forms(s->w, s->pos, word, len, a)) {
        visit_forms(s, a);
        return;
    }
    tg_wordnet_inflect(word, len, s->pos, a);
    if (visit_forms(s, a) || s->ended || s->w->rules != TG_NLTK_3_7) return;
    a->n = 0;
    tg_wordnet_inflect(word, len, s->pos, a);
    /* Every form is shorter than the one it came from, or ends in a vowel no rule takes twice. */
    for (size_t round = 0; a->n && round < TG_WORDNET_MAX_WORD; round++) {
        b->n = 0;
        for (size_t i = 0; i < a->n; i++) tg_wordnet_inflect(a->text[i], a->len[i], s->pos, b);
        if (visit_forms(s, b) || s->ended) return;
        tg_wordnet_forms *old = a;
        a = b, b = old;
    }
}

void tg_wordnet_synonyms(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_visit *visit,
                         void *arg) {
    if (len == 0 || len > TG_WORDNET_MAX_WORD || memchr(word, ' ', len)) return;
    tg_wordnet_forms a, b;
    search s = {.w = w, .visit = visit, .arg = arg};
    for (s.pos = 0; s.pos < TG_WORDNET_N_POS && !s.ended; s.pos++)
        search_pos(&s, word, len, &a, &b);
}

/* The synsets of a form, whatever it is; false: the form is not in the database. */
static bool visit_everywhere(search *s, const char *form, size_t len) {
    bool found = false;
    for (s->pos = 0; s->pos < TG_WORDNET_N_POS; s->pos++) found |= visit_form(s, form, len);
    return found;
}

/* METEOR's one base form: the first rule that leads to a known word. */
static void visit_stem(search *s, const char *word, size_t len) {
    static const tg_wordnet_rule in_order[] = {
        {"s", ""},      {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"},
        {"men", "man"}, {"ies", "y"}, {"es", "e"},  {"es", ""},   {"ed", "e"},    {"ed", ""},
        {"ing", "e"},   {"ing", ""},  {"er", ""},   {"est", ""},  {"er", "e"},    {"est", "e"}};
    if (len <= 2 || !memcmp(word + len - 2, "ss", 2)) return;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        size_t n = strlen(in_order[i].old);
        tg_wordnet_forms f = {.n = 0};
        if (len < n || memcmp(word + len - n, in_order[i].old, n) != 0) continue;
        tg_wordnet_add_form(&f, word, len - n, in_order[i].new, strlen(in_order[i].new));
        if (f.n && f.len[0] && visit_everywhere(s, f.text[0], f.len[0])) return;
    }
}

void tg_wordnet_synsets(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_synset *visit,
                        void *arg) {
    if (len == 0 || len > TG_WORDNET_MAX_WORD || memchr(word, ' ', len)) return;
    search s = {.w = w, .number = visit, .arg = arg};
    tg_wordnet_forms f = {.n = 0};
    bool irregular = false;
    visit_everywhere(&s, word, len);
    for (size_t p = 0; p < TG_WORDNET_N_POS; p++)
        irregular |= tg_wordnet_irregular_forms(w, p, word, len, &f);
    for (size_t i = 0; i < f.n; i++) visit_everywhere(&s, f.text[i], f.len[i]);
    if (!irregular) visit_stem(&s, word, len);
}
