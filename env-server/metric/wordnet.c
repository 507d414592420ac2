/* index.* gives the places of a lemma's synsets in data.*, *.exc the irregular forms. Nothing in the
 * files is trusted: every step stays within the map, and a line that cannot be read has no synonyms. */
#include "env-server/metric/wordnet.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/hash.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { N_POS = 4, MAX_WORD = 255, MAX_FORMS = 64 };

/* The lines of a file by their first word. */
typedef struct table {
    tg_filemap map;
    uint32_t *slots; /* line start + 1, 0 free */
    size_t mask;
} table;

struct tg_wordnet {
    table index[N_POS], exceptions[N_POS];
    tg_filemap data[N_POS];
    tg_filemap counts; /* empty: no such file */
    tg_nltk_rules rules;
};

static const char *const pos_names[N_POS] = {"noun", "verb", "adj", "adv"};

typedef struct rule {
    const char *old, *new;
} rule;
static const rule rules_of[N_POS][10] = {
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

/* ---- files ------------------------------------------------------------------------------------- */

static size_t line_end(const tg_filemap *m, size_t at) {
    const unsigned char *end = memchr(m->data + at, '\n', m->len - at);
    return end ? (size_t)(end - m->data) : m->len;
}

static size_t word_end(const tg_filemap *m, size_t at, size_t end) {
    while (at < end && m->data[at] != ' ') at++;
    return at;
}

static tg_status build(table *t, const char *path, tg_error *err) {
    size_t lines = 1, size = 1024;
    if (t->map.len >= UINT32_MAX)
        return tg_fail(err, TG_DATA, "%s: too large for a WordNet file", path);
    for (size_t i = 0; i < t->map.len; i++) lines += t->map.data[i] == '\n';
    while (size < 2 * lines) size *= 2;
    t->slots = tg_alloc_array(size, sizeof *t->slots);
    if (!t->slots) return tg_fail_nomem(err, size * sizeof *t->slots);
    t->mask = size - 1;
    for (size_t at = 0, end; at < t->map.len; at = end + 1) {
        end = line_end(&t->map, at);
        size_t n = word_end(&t->map, at, end) - at; /* the licence's lines begin with a space */
        if (n == 0) continue;
        size_t slot = tg_hash64(t->map.data + at, n) & t->mask;
        while (t->slots[slot]) slot = (slot + 1) & t->mask;
        t->slots[slot] = (uint32_t)at + 1;
    }
    return TG_OK;
}

/* The line of a word: *at and *end. */
static bool find(const table *t, const char *word, size_t len, size_t *at, size_t *end) {
    size_t slot = tg_hash64(word, len) & t->mask;
    for (; t->slots[slot]; slot = (slot + 1) & t->mask) {
        size_t line = t->slots[slot] - 1;
        if (line + len > t->map.len || memcmp(t->map.data + line, word, len) != 0) continue;
        if (line + len < t->map.len && t->map.data[line + len] != ' ' &&
            t->map.data[line + len] != '\n')
            continue;
        *at = line;
        *end = line_end(&t->map, line);
        return true;
    }
    return false;
}

static tg_status open_file(tg_filemap *m, const char *dir, const char *stem, const char *pos,
                           const char *ending, tg_buf *path, tg_error *err) {
    tg_buf_reset(path);
    tg_buf_printf(path, "%s/%s%s%s", dir, stem, pos, ending);
    if (path->failed) return tg_fail_nomem(err, strlen(dir));
    tg_status st = tg_filemap_open(m, path->data, err);
    if (st == TG_NOINPUT)
        return tg_fail(err, TG_NOINPUT,
                       "%s: not found; WordNet 3.0 is needed: install wordnet-base (Debian) or set "
                       "TEXTGEN_WORDNET to the folder of index.noun",
                       path->data);
    return st;
}

tg_status tg_wordnet_open(tg_wordnet **out, const char *dir, tg_nltk_rules rules, tg_error *err) {
    *out = NULL;
    if (!dir) dir = getenv("TEXTGEN_WORDNET");
    if (!dir || !*dir) dir = "/usr/share/wordnet";
    tg_wordnet *w = tg_alloc(sizeof *w);
    if (!w) return tg_fail_nomem(err, sizeof *w);
    w->rules = rules;
    tg_buf path = {0};
    tg_status st = TG_OK;
    for (size_t p = 0; p < N_POS && st == TG_OK; p++) {
        st = open_file(&w->index[p].map, dir, "index.", pos_names[p], "", &path, err);
        if (st == TG_OK) st = build(&w->index[p], path.data, err);
        if (st == TG_OK)
            st = open_file(&w->exceptions[p].map, dir, "", pos_names[p], ".exc", &path, err);
        if (st == TG_OK) st = build(&w->exceptions[p], path.data, err);
        if (st == TG_OK) st = open_file(&w->data[p], dir, "data.", pos_names[p], "", &path, err);
    }
    if (st == TG_OK) { /* only the order of guesses rests on it */
        tg_error none = {0};
        if (open_file(&w->counts, dir, "cntlist.rev", "", "", &path, &none) != TG_OK)
            memset(&w->counts, 0, sizeof w->counts);
    }
    tg_buf_fini(&path);
    if (st == TG_OK)
        *out = w;
    else
        tg_wordnet_close(&w);
    return st;
}

void tg_wordnet_close(tg_wordnet **w) {
    if (!*w) return;
    for (size_t p = 0; p < N_POS; p++) {
        tg_filemap_close(&(*w)->index[p].map);
        tg_filemap_close(&(*w)->exceptions[p].map);
        tg_filemap_close(&(*w)->data[p]);
        tg_free((*w)->index[p].slots);
        tg_free((*w)->exceptions[p].slots);
    }
    tg_filemap_close(&(*w)->counts);
    tg_free(*w);
    *w = NULL;
}

/* ---- synsets ----------------------------------------------------------------------------------- */

typedef struct search {
    const tg_wordnet *w;
    size_t pos;
    tg_wordnet_visit *visit;
    tg_wordnet_synset *number; /* or NULL: gets the synsets' numbers in place of names */
    void *arg;
    bool ended;
} search;

static bool number_at(const tg_filemap *m, size_t *at, size_t end, unsigned base, size_t *out) {
    size_t i = *at, value = 0;
    while (i < end && m->data[i] == ' ') i++;
    size_t begin = i;
    for (; i < end && m->data[i] != ' '; i++) {
        unsigned char c = m->data[i];
        unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base || value > SIZE_MAX / 32) return false;
        value = value * base + digit;
    }
    *at = i, *out = value;
    return i > begin;
}

static bool skip_words(const tg_filemap *m, size_t *at, size_t end, size_t n) {
    for (; n; n--) {
        while (*at < end && m->data[*at] == ' ') ++*at;
        if (*at == end) return false;
        *at = word_end(m, *at, end);
    }
    return true;
}

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
    size_t end = line_end(m, offset);
    if (!skip_words(m, &at, end, 3) || !number_at(m, &at, end, 16, &n)) return;
    for (; n && !s->ended; n--) {
        while (at < end && m->data[at] == ' ') at++;
        size_t begin = at;
        at = word_end(m, at, end);
        const char *name = (const char *)m->data + begin;
        size_t len = at - begin;
        const char *mark =
            memchr(name, '(', len); /* syntactic marker of an adjective: galore(ip) */
        if (mark && len && name[len - 1] == ')') len = (size_t)(mark - name);
        if (!memchr(name, '_', len)) s->ended = !s->visit(s->arg, name, len);
        if (!skip_words(m, &at, end, 1)) return;
    }
}

/* lemma pos synset_cnt p_cnt [ptr_symbol…] sense_cnt tagsense_cnt offset [offset …]. True: the form
 * is in the database. */
static bool visit_form(search *s, const char *form, size_t len) {
    const table *t = &s->w->index[s->pos];
    size_t at, end, n, n_pointers;
    if (!find(t, form, len, &at, &end)) return false;
    if (!skip_words(&t->map, &at, end, 2) || !number_at(&t->map, &at, end, 10, &n) ||
        !number_at(&t->map, &at, end, 10, &n_pointers) ||
        !skip_words(&t->map, &at, end, n_pointers + 2))
        return true;
    for (size_t offset; n && !s->ended && number_at(&t->map, &at, end, 10, &offset); n--)
        visit_synset(s, offset);
    return true;
}

/* ---- morphy ------------------------------------------------------------------------------------ */

typedef struct forms {
    char text[MAX_FORMS][MAX_WORD + 1];
    size_t len[MAX_FORMS];
    size_t n;
} forms;

static void add_form(forms *f, const char *a, size_t a_len, const char *b, size_t b_len) {
    char text[MAX_WORD + 1];
    if (a_len + b_len > MAX_WORD || f->n == MAX_FORMS) return;
    memcpy(text, a, a_len);
    memcpy(text + a_len, b, b_len);
    for (size_t i = 0; i < f->n; i++)
        if (f->len[i] == a_len + b_len && !memcmp(f->text[i], text, f->len[i])) return;
    memcpy(f->text[f->n], text, a_len + b_len);
    f->len[f->n++] = a_len + b_len;
}

static void inflect(const char *word, size_t len, size_t pos, forms *out) {
    for (const rule *r = rules_of[pos]; r->old; r++) {
        size_t n = strlen(r->old);
        if (len >= n && !memcmp(word + len - n, r->old, n))
            add_form(out, word, len - n, r->new, strlen(r->new));
    }
}

static bool visit_forms(search *s, const forms *f) {
    bool found = false;
    for (size_t i = 0; i < f->n && !s->ended; i++) found |= visit_form(s, f->text[i], f->len[i]);
    return found;
}

/* The irregular base forms of a word; false: it has none. */
static bool irregular_forms(const tg_wordnet *w, size_t pos, const char *word, size_t len,
                            forms *out) {
    const table *t = &w->exceptions[pos];
    size_t at, end;
    if (!find(t, word, len, &at, &end)) return false;
    for (at += len;;) {
        while (at < end && t->map.data[at] == ' ') at++;
        if (at >= end) return true;
        size_t stop = word_end(&t->map, at, end);
        add_form(out, (const char *)t->map.data + at, stop - at, "", 0);
        at = stop;
    }
}

static void search_pos(search *s, const char *word, size_t len, forms *a, forms *b) {
    a->n = 0;
    add_form(a, word, len, "", 0);
    if (irregular_forms(s->w, s->pos, word, len, a)) {
        visit_forms(s, a);
        return;
    }
    inflect(word, len, s->pos, a);
    if (visit_forms(s, a) || s->ended || s->w->rules != TG_NLTK_3_7) return;
    a->n = 0;
    inflect(word, len, s->pos, a);
    /* Every form is shorter than the one it came from, or ends in a vowel no rule takes twice. */
    for (size_t round = 0; a->n && round < MAX_WORD; round++) {
        b->n = 0;
        for (size_t i = 0; i < a->n; i++) inflect(a->text[i], a->len[i], s->pos, b);
        if (visit_forms(s, b) || s->ended) return;
        forms *old = a;
        a = b, b = old;
    }
}

void tg_wordnet_synonyms(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_visit *visit,
                         void *arg) {
    if (len == 0 || len > MAX_WORD || memchr(word, ' ', len)) return;
    forms a, b;
    search s = {.w = w, .visit = visit, .arg = arg};
    for (s.pos = 0; s.pos < N_POS && !s.ended; s.pos++) search_pos(&s, word, len, &a, &b);
}

/* The synsets of a form, whatever it is; false: the form is not in the database. */
static bool visit_everywhere(search *s, const char *form, size_t len) {
    bool found = false;
    for (s->pos = 0; s->pos < N_POS; s->pos++) found |= visit_form(s, form, len);
    return found;
}

/* METEOR's one base form: the first rule that leads to a known word. */
static void visit_stem(search *s, const char *word, size_t len) {
    static const rule in_order[] = {
        {"s", ""},      {"ses", "s"}, {"xes", "x"}, {"zes", "z"}, {"ches", "ch"}, {"shes", "sh"},
        {"men", "man"}, {"ies", "y"}, {"es", "e"},  {"es", ""},   {"ed", "e"},    {"ed", ""},
        {"ing", "e"},   {"ing", ""},  {"er", ""},   {"est", ""},  {"er", "e"},    {"est", "e"}};
    if (len <= 2 || !memcmp(word + len - 2, "ss", 2)) return;
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        size_t n = strlen(in_order[i].old);
        forms f = {.n = 0};
        if (len < n || memcmp(word + len - n, in_order[i].old, n) != 0) continue;
        add_form(&f, word, len - n, in_order[i].new, strlen(in_order[i].new));
        if (f.n && f.len[0] && visit_everywhere(s, f.text[0], f.len[0])) return;
    }
}

void tg_wordnet_synsets(const tg_wordnet *w, const char *word, size_t len, tg_wordnet_synset *visit,
                        void *arg) {
    if (len == 0 || len > MAX_WORD || memchr(word, ' ', len)) return;
    search s = {.w = w, .number = visit, .arg = arg};
    forms f = {.n = 0};
    bool irregular = false;
    visit_everywhere(&s, word, len);
    for (size_t p = 0; p < N_POS; p++) irregular |= irregular_forms(w, p, word, len, &f);
    for (size_t i = 0; i < f.n; i++) visit_everywhere(&s, f.text[i], f.len[i]);
    if (!irregular) visit_stem(&s, word, len);
}

/* ---- one part of speech ------------------------------------------------------------------------ */

/* Sum over the lines "lemma%type:… number count" of one lemma; they are sorted. */
static unsigned frequency_of(const tg_wordnet *w, size_t pos, const char *lemma, size_t len) {
    static const char *const types[N_POS] = {"1", "2", "35", "4"};
    const tg_filemap *m = &w->counts;
    size_t low = 0, high = m->len, sum = 0;
    while (low < high) { /* the first line that is not before "lemma%" */
        size_t middle = low + (high - low) / 2, at = middle;
        while (at > low && m->data[at - 1] != '\n') at--;
        size_t end = line_end(m, at), n = end - at < len ? end - at : len;
        int order = memcmp(m->data + at, lemma, n);
        if (!order) order = n < len ? -1 : end - at == n ? -1 : (int)m->data[at + n] - '%';
        if (order < 0)
            low = end + 1;
        else
            high = at;
    }
    for (size_t end; low + len + 2 < m->len; low = end + 1) {
        end = line_end(m, low);
        if (memcmp(m->data + low, lemma, len) != 0 || m->data[low + len] != '%') break;
        size_t at = low, count;
        bool ours = strchr(types[pos], m->data[low + len + 1]) != NULL;
        if (ours && skip_words(m, &at, end, 2) && number_at(m, &at, end, 10, &count)) sum += count;
    }
    return sum < 1000000 ? (unsigned)sum : 1000000;
}

/* Reads the first sense's field; false: the form is not in the database. */
static bool read_form(const tg_wordnet *w, size_t pos, const char *form, size_t len,
                      tg_wordnet_entry *out) {
    const table *t = &w->index[pos];
    size_t at, end, n_pointers, offset, field;
    if (len >= sizeof out->lemma || !find(t, form, len, &at, &end)) return false;
    memcpy(out->lemma, form, len);
    out->lemma[len] = 0;
    out->frequency = frequency_of(w, pos, form, len);
    out->field = 0;
    if (!skip_words(&t->map, &at, end, 3) || !number_at(&t->map, &at, end, 10, &n_pointers) ||
        !skip_words(&t->map, &at, end, n_pointers + 2) ||
        !number_at(&t->map, &at, end, 10, &offset) || offset >= w->data[pos].len)
        return true;
    const tg_filemap *m = &w->data[pos];
    end = line_end(m, offset);
    if (skip_words(m, &offset, end, 1) && number_at(m, &offset, end, 10, &field) && field < 64)
        out->field = (unsigned)field;
    return true;
}

bool tg_wordnet_look_up(const tg_wordnet *w, tg_wordnet_pos pos, const char *word, size_t len,
                        tg_wordnet_entry *out) {
    if (len == 0 || len > MAX_WORD) return false;
    forms f = {.n = 0};
    out->inflected = true;
    bool irregular = irregular_forms(w, pos, word, len, &f);
    for (size_t i = 0; i < f.n; i++)
        if (read_form(w, pos, f.text[i], f.len[i], out)) return true;
    out->inflected = false;
    if (read_form(w, pos, word, len, out)) return true;
    out->inflected = true;
    if (!irregular) inflect(word, len, pos, &f);
    for (size_t i = 0; i < f.n; i++)
        if (f.len[i] && read_form(w, pos, f.text[i], f.len[i], out)) return true;
    return false;
}
