/* Punkt's decisions: a first pass by the type of each token, a second by its neighbour (the paper's
 * sections 4.1 to 4.3), over the few tokens around each possible end of a sentence. */
#include "env-server/metric/punkt.h"

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/text/unicode.h"
#include "env-server/metric/pystr.h"
#include "env-server/reward/pytext.h"

#include <string.h>

/* What is known of a word; several may hold. */
enum {
    ABBREVIATION = 1,
    STARTER = 2, /* a frequent first word */
    LOWER = 4,   /* seen in lower case */
    STARTS = 8,  /* … and never capitalised inside a sentence */
    BEGINS = 16, /* seen in lower case at a beginning, never capitalised */
};

struct tg_punkt {
    tg_map words;        /* type -> flags above */
    tg_map collocations; /* "typ\tnext" */
    tg_nltk_rules rules;
};

static bool add(tg_map *m, const char *word, size_t len, uint64_t flag) {
    uint64_t old = 0;
    tg_map_get(m, word, len, &old);
    return tg_map_set(m, word, len, old | flag);
}

static bool add_lines(tg_map *m, const char *lines, uint64_t flag) {
    for (size_t n; *lines; lines += n + 1) {
        n = strcspn(lines, "\n");
        if (!add(m, lines, n, flag)) return false;
    }
    return true;
}

static bool add_front_coded(tg_map *m, const char *text, uint64_t flag) {
    char word[64];
    size_t len = 0;
    for (const char *p = text; *p;) {
        len = (size_t)(*p++ - 'A');
        while (*p && !(*p >= 'A' && *p <= 'Z') && len < sizeof word) word[len++] = *p++;
        if (!add(m, word, len, flag)) return false;
    }
    return true;
}

tg_status tg_punkt_create(tg_punkt **out, tg_nltk_rules rules, tg_error *err) {
    *out = NULL;
    tg_punkt *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->rules = rules;
    if (!add_front_coded(&p->words, tg_punkt_starts, LOWER | STARTS) ||
        !add_front_coded(&p->words, tg_punkt_cased, LOWER) ||
        !add_lines(&p->words, tg_punkt_begins, BEGINS) ||
        !add_lines(&p->words, tg_punkt_starters, STARTER) ||
        !add_lines(&p->words, tg_punkt_abbreviations, ABBREVIATION) ||
        !add_lines(&p->collocations, tg_punkt_collocations, 1)) {
        tg_punkt_destroy(&p);
        return tg_fail(err, TG_NOMEM, "out of memory for the sentence splitter");
    }
    *out = p;
    return TG_OK;
}

void tg_punkt_destroy(tg_punkt **p) {
    if (!*p) return;
    tg_map_fini(&(*p)->words);
    tg_map_fini(&(*p)->collocations);
    tg_free(*p);
    *p = NULL;
}

void tg_sentences_fini(tg_sentences *s) {
    tg_free(s->spans);
    tg_free(s->tokens);
    tg_points_fini(&s->context);
    tg_buf_fini(&s->lower);
    memset(s, 0, sizeof *s);
}

/* ---- characters -------------------------------------------------------------------------------- */

static bool is_one_of(uint32_t c, const char *set) {
    return c && c < 0x80 && strchr(set, (int)c);
}

static bool is_curly(const tg_punkt *p, uint32_t c) {
    return p->rules == TG_NLTK_CURRENT &&
           ((c >= 0x2018 && c <= 0x2019) || (c >= 0x201C && c <= 0x201D) || c == 0xAB || c == 0xBB);
}

static bool is_non_word(const tg_punkt *p, uint32_t c) {
    return is_one_of(c, ")\";}]*:@'({[?!") || is_curly(p, c);
}

static bool is_closing(const tg_punkt *p, uint32_t c) {
    return is_one_of(c, "\"')]}") || is_curly(p, c);
}

bool tg_nltk_space(tg_nltk_rules rules, uint32_t c) {
    return tg_py_space(c) && (rules == TG_NLTK_3_7 || c < 28 || c > 31);
}

bool tg_nltk_word(tg_nltk_rules rules, uint32_t c) {
    if (rules == TG_NLTK_3_7 || c < 0x80 || (c >= 0xD800 && c < 0xE000)) return tg_py_isword(c);
    return tg_unicode_is_word(c);
}

static bool is_space(const tg_punkt *p, uint32_t c) {
    return tg_nltk_space(p->rules, c);
}

static bool is_end(uint32_t c) {
    return c == '.' || c == '?' || c == '!';
}

/* ---- tokens ------------------------------------------------------------------------------------ */

typedef struct tg_punkt_token {
    const uint32_t *c;
    size_t n;
    size_t type, type_len; /* in the buffer of lower-cased types */
    bool sentbreak, abbr, ellipsis, number;
} token;

/* Length of -- , .. or ". . ." at c, 0 when there is none. */
static size_t multi_char(const tg_punkt *p, const uint32_t *c, size_t n) {
    size_t k = 0;
    if (n < 2 || (c[0] != '-' && c[0] != '.')) return 0;
    while (k < n && c[k] == c[0]) k++;
    if (k >= 2) return k;
    if (c[0] != '.') return 0;
    size_t pairs = 0;
    while (2 * pairs + 1 < n && c[2 * pairs] == '.' && is_space(p, c[2 * pairs + 1])) pairs++;
    if (2 * pairs < n && c[2 * pairs] == '.' && pairs >= 2) return 2 * pairs + 1;
    return pairs >= 3 ? 2 * pairs - 1 : 0;
}

static bool ends_word(const tg_punkt *p, const uint32_t *c, size_t n) {
    return n == 0 || is_space(p, c[0]) || is_non_word(p, c[0]) || multi_char(p, c, n) > 0;
}

/* Length of the token at c, which is no space. */
static size_t token_length(const tg_punkt *p, const uint32_t *c, size_t n) {
    size_t k = multi_char(p, c, n);
    if (k) return k;
    if (is_one_of(c[0], "(\"`{[:;&#*@)}]-,")) return 1;
    for (k = 1; !ends_word(p, c + k, n - k); k++)
        if (c[k] == ',' && ends_word(p, c + k + 1, n - k - 1)) break;
    return k;
}

/* -?[.,]?\d[\d,.-]*\.? and nothing else. */
static bool is_numeric(const uint32_t *c, size_t n) {
    size_t i = n > 0 && c[0] == '-';
    if (i < n && (c[i] == '.' || c[i] == ',')) i++;
    if (i >= n || tg_py_decimal(c[i]) < 0) return false;
    for (; i < n; i++)
        if (tg_py_decimal(c[i]) < 0 && !is_one_of(c[i], ",.-")) return false;
    return true;
}

static bool all_dots(const token *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->c[i] != '.') return false;
    return t->n >= 2;
}

static uint64_t known(const tg_punkt *p, const char *word, size_t len) {
    uint64_t flags = 0;
    tg_map_get(&p->words, word, len, &flags);
    return flags;
}

static void lower_points(tg_sentences *s, const uint32_t *c, size_t n) {
    bool ascii = true;
    for (size_t i = 0; i < n && ascii; i++) ascii = c[i] < 0x80;
    size_t at = s->lower.len;
    tg_points_write(&s->lower, c, n);
    if (s->lower.failed) return;
    if (ascii) {
        for (size_t i = at; i < s->lower.len; i++)
            if (s->lower.data[i] >= 'A' && s->lower.data[i] <= 'Z') s->lower.data[i] += 32;
        return;
    }
    tg_buf copy = {0};
    tg_py_lower(&copy, s->lower.data + at, s->lower.len - at);
    s->lower.len = at;
    tg_buf_append(&s->lower, copy.data, copy.len);
    s->lower.failed |= copy.failed;
    tg_buf_fini(&copy);
}

/* The first pass: type, and what the token alone says. */
static void annotate(const tg_punkt *p, tg_sentences *s, token *t) {
    t->type = s->lower.len;
    t->number = is_numeric(t->c, t->n);
    if (t->number)
        tg_buf_puts(&s->lower, "##number##");
    else
        lower_points(s, t->c, t->n);
    t->type_len = s->lower.len - t->type;
    if (s->lower.failed) return;
    uint32_t last = t->c[t->n - 1];
    if (t->n == 1 && is_end(last)) {
        t->sentbreak = true;
    } else if (all_dots(t)) {
        t->ellipsis = true;
    } else if (last == '.' && t->c[t->n - 2] != '.') {
        size_t at = s->lower.len; /* of a number too, the word itself is looked up */
        lower_points(s, t->c, t->n - 1);
        if (s->lower.failed) return;
        const char *word = s->lower.data + at, *tail = word;
        size_t len = s->lower.len - at;
        for (const char *q = word; q < word + len; q++)
            if (*q == '-') tail = q + 1;
        t->abbr = (known(p, word, len) & ABBREVIATION) ||
                  (known(p, tail, len - (size_t)(tail - word)) & ABBREVIATION);
        t->sentbreak = !t->abbr;
        s->lower.len = at;
    }
}

typedef enum evidence { NO, YES, UNKNOWN } evidence;

/* 4.1.1: does the token look like the first of a sentence? */
static evidence orthographic(const token *t, uint64_t flags) {
    if (t->n == 1 && is_one_of(t->c[0], ";:,.!?")) return NO;
    if (tg_py_isupper(t->c[0]) && (flags & STARTS)) return YES;
    if (tg_py_islower(t->c[0]) && !(flags & BEGINS)) return NO;
    return UNKNOWN;
}

/* The second pass over a pair of neighbours; changes t. */
static void reconsider(const tg_punkt *p, tg_sentences *s, token *t, const token *next) {
    if (t->c[t->n - 1] != '.') return;
    const char *types = s->lower.data;
    const char *typ = types + t->type, *next_typ = types + next->type;
    size_t typ_len = t->type_len, next_len = next->type_len;
    if (typ_len > 1 && typ[typ_len - 1] == '.') typ_len--;
    if (next->sentbreak && next_len > 1 && next_typ[next_len - 1] == '.') next_len--;
    bool initial = t->n == 2 && tg_nltk_word(p->rules, t->c[0]) && tg_py_decimal(t->c[0]) < 0;

    char pair[64];
    if (typ_len + next_len + 1 <= sizeof pair) {
        memcpy(pair, typ, typ_len);
        pair[typ_len] = '\t';
        memcpy(pair + typ_len + 1, next_typ, next_len);
        uint64_t one;
        if (tg_map_get(&p->collocations, pair, typ_len + 1 + next_len, &one)) {
            t->sentbreak = false;
            return;
        }
    }
    uint64_t flags = known(p, next_typ, next_len);
    evidence starts = orthographic(next, flags);
    bool upper = tg_py_isupper(next->c[0]);
    if ((t->abbr || t->ellipsis) && !initial && (starts == YES || (upper && (flags & STARTER)))) {
        t->sentbreak = true;
        return;
    }
    if (!initial && !t->number) return;
    if (starts == NO || (starts == UNKNOWN && initial && upper && !(flags & LOWER)))
        t->sentbreak = false;
}

/* Is there a sentence break in c[0 .. n) before its last token? */
static tg_status has_break(const tg_punkt *p, const uint32_t *c, size_t n, tg_sentences *s,
                           bool *out, tg_error *err) {
    size_t count = 0, line = 0;
    tg_buf_reset(&s->lower);
    for (size_t at = 0; at < n;) {
        if (is_space(p, c[at])) {
            at++;
            continue;
        }
        if (line <= at) { /* tokens do not cross lines, and a line of spaces has none */
            bool blank = true;
            for (line = at; line < n && c[line] != '\n'; line++) blank &= tg_py_space(c[line]);
            if (blank) {
                at = line;
                continue;
            }
        }
        if (count == s->tokens_cap) {
            size_t cap = count ? 2 * count : 16;
            token *tokens = tg_realloc_array(s->tokens, cap, sizeof *tokens);
            if (!tokens) return tg_fail_nomem(err, cap * sizeof *tokens);
            s->tokens = tokens, s->tokens_cap = cap;
        }
        s->tokens[count] = (token){.c = c + at, .n = token_length(p, c + at, line - at)};
        annotate(p, s, &s->tokens[count]);
        at += s->tokens[count++].n;
    }
    if (s->lower.failed) return tg_fail_nomem(err, s->lower.len);
    *out = false;
    for (size_t i = 0; i + 1 < count && !*out; i++) {
        reconsider(p, s, &s->tokens[i], &s->tokens[i + 1]);
        *out = s->tokens[i].sentbreak;
    }
    return TG_OK;
}

/* ---- sentences --------------------------------------------------------------------------------- */

static bool push_span(tg_sentences *s, size_t begin, size_t end) {
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        tg_span *spans = tg_realloc_array(s->spans, cap, sizeof *spans);
        if (!spans) return false;
        s->spans = spans, s->cap = cap;
    }
    s->spans[s->n++] = (tg_span){begin, end};
    return true;
}

/* A possible end of a sentence: the character at `at`, what follows it, the word before it. */
typedef struct candidate {
    size_t at, after, next; /* after: end of what follows; next: start of the next token, or 0 */
    size_t word, word_end;
} candidate;

static bool find_candidate(const tg_punkt *p, const tg_points *t, size_t from, candidate *out) {
    for (size_t i = from; i + 1 < t->n; i++) {
        if (!is_end(t->c[i])) continue;
        size_t k = i + 1;
        if (is_non_word(p, t->c[k])) {
            *out = (candidate){.at = i, .after = k + 1};
            return true;
        }
        while (k < t->n && is_space(p, t->c[k])) k++;
        if (k == i + 1 || k == t->n) continue;
        out->at = i, out->next = k;
        while (k < t->n && !is_space(p, t->c[k])) k++;
        out->after = k;
        return true;
    }
    return false;
}

/* If there is a break at the candidate, ends the sentence that began at *begin. The word and what
 * follows it are judged side by side, without the spaces that 3.7 drops between them. */
static tg_status judge(const tg_punkt *p, const tg_points *t, const candidate *m, tg_sentences *s,
                       size_t *begin, tg_error *err) {
    const uint32_t *c = t->c + m->word;
    size_t n = m->after - m->word;
    bool is_break = false;
    if (m->word_end != m->at) {
        size_t a = m->word_end - m->word, b = m->after - m->at;
        if (!tg_points_reserve(&s->context, a + b)) return tg_fail_nomem(err, a + b);
        memcpy(s->context.c, t->c + m->word, a * sizeof *c);
        memcpy(s->context.c + a, t->c + m->at, b * sizeof *c);
        c = s->context.c, n = a + b;
    }
    tg_status st = has_break(p, c, n, s, &is_break, err);
    if (st != TG_OK || !is_break) return st;
    if (!push_span(s, *begin, m->at + 1)) return tg_fail_nomem(err, s->n * sizeof *s->spans);
    *begin = m->next ? m->next : m->at + 1;
    return TG_OK;
}

static bool is_ascii_space(uint32_t c) {
    return c == ' ' || (c >= 9 && c <= 13);
}

/* 3.10: from left to right; a candidate whose word holds the one before replaces it. */
static tg_status find_breaks(const tg_punkt *p, const tg_points *t, tg_sentences *s, size_t *begin,
                             tg_error *err) {
    candidate last = {0}, m = {0};
    bool have = false;
    tg_status st = TG_OK;
    for (size_t from = 0; st == TG_OK && find_candidate(p, t, from, &m); from = last.at + 1) {
        size_t stop = last.word_end, k = m.at;
        while (k > stop && !is_ascii_space(t->c[k - 1])) k--;
        /* A space at the very start counts as none, as in the original. */
        m.word = k > stop + 1 ? k : last.word;
        m.word_end = m.at;
        if (have && last.word_end <= m.word) st = judge(p, t, &last, s, begin, err);
        last = m, have = true;
        m = (candidate){0};
    }
    if (st == TG_OK && have) st = judge(p, t, &last, s, begin, err);
    return st;
}

/* The word before a candidate, as str.rsplit() finds it. `last` is the candidate to the left, whose
 * word is known: a long run of marks is walked once. */
static void find_word(const tg_points *t, candidate *m, const candidate *last) {
    size_t k = m->at;
    while (k > 0 && tg_py_space(t->c[k - 1])) k--;
    m->word_end = k;
    while (k > 0 && !tg_py_space(t->c[k - 1])) {
        if (last && k == last->at) {
            if (last->word_end == last->at) k = last->word;
            break;
        }
        k--;
    }
    m->word = k;
}

/* 3.7: from right to left; a candidate is dropped when the next one kept has it in its word. */
static tg_status find_breaks_3_7(const tg_punkt *p, const tg_points *t, tg_sentences *s,
                                 size_t *begin, tg_error *err) {
    candidate *list = NULL, m = {0};
    size_t n = 0, cap = 0;
    tg_status st = TG_OK;
    for (size_t from = 0; find_candidate(p, t, from, &m); from = m.at + 1, m = (candidate){0}) {
        if (n == cap) {
            cap = cap ? 2 * cap : 16;
            candidate *more = tg_realloc_array(list, cap, sizeof *list);
            if (!more) {
                tg_free(list);
                return tg_fail_nomem(err, cap * sizeof *list);
            }
            list = more;
        }
        find_word(t, &m, n ? &list[n - 1] : NULL);
        list[n++] = m;
    }
    size_t before = SIZE_MAX, kept = n; /* kept ones move to the end of the list */
    for (size_t i = n; i-- > 0;) {
        if (before != SIZE_MAX && list[i].at + 1 > before) continue;
        for (before = list[i].word; before > 0 && tg_py_space(t->c[before - 1]);) before--;
        list[--kept] = list[i];
    }
    for (size_t i = kept; i < n && st == TG_OK; i++) st = judge(p, t, &list[i], s, begin, err);
    tg_free(list);
    return st;
}

/* Closing quotes and brackets at the start of a sentence belong to the one before. */
static void realign(const tg_punkt *p, const tg_points *t, tg_sentences *s) {
    size_t n = 0, shift = 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t begin = s->spans[i].begin + shift, end = s->spans[i].end, k = 0;
        shift = 0;
        if (i + 1 < s->n) {
            tg_span next = s->spans[i + 1];
            const uint32_t *c = t->c + next.begin;
            size_t len = next.end > next.begin ? next.end - next.begin : 0;
            bool whole = false;
            while (!whole && k < len && is_closing(p, c[k])) {
                k++;
                whole = k == len || is_space(p, c[k]) ||
                        (k + 1 < len && c[k] == '-' && c[k + 1] == '-');
            }
            if (whole) {
                for (shift = k; shift < len && is_space(p, c[shift]);) shift++;
                end = next.begin + k;
            }
        }
        if (begin < end) s->spans[n++] = (tg_span){begin, end};
    }
    s->n = n;
}

tg_status tg_punkt_split(const tg_punkt *p, const tg_points *text, tg_sentences *out,
                         tg_error *err) {
    size_t begin = 0, end = text->n;
    out->n = 0;
    tg_status st = p->rules == TG_NLTK_3_7 ? find_breaks_3_7(p, text, out, &begin, err)
                                           : find_breaks(p, text, out, &begin, err);
    if (st != TG_OK) return st;
    while (end > 0 && tg_py_space(text->c[end - 1])) end--;
    if (!push_span(out, begin, end)) return tg_fail_nomem(err, out->n * sizeof *out->spans);
    realign(p, text, out);
    return TG_OK;
}
