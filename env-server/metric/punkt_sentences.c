/* The sentences of a text: its possible ends of sentences, which of them are, and closing marks put where they belong. */
#include "env-server/metric/punkt_impl.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"

#include <string.h>

void tg_sentences_fini(tg_sentences *s) {
    tg_free(s->spans);
    tg_free(s->tokens);
    tg_points_fini(&s->context);
    tg_buf_fini(&s->lower);
    memset(s, 0, sizeof *s);
}

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
        if (!tg_punkt_is_end(t->c[i])) continue;
        size_t k = i + 1;
        if (tg_punkt_is_non_word(p, t->c[k])) {
            *out = (candidate){.at = i, .after = k + 1};
            return true;
        }
        while (k < t->n && tg_punkt_is_space(p, t->c[k])) k++;
        if (k == i + 1 || k == t->n) continue;
        out->at = i, out->next = k;
        while (k < t->n && !tg_punkt_is_space(p, t->c[k])) k++;
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
    tg_status st = tg_punkt_has_break(p, c, n, s, &is_break, err);
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
            while (!whole && k < len && tg_punkt_is_closing(p, c[k])) {
                k++;
                whole = k == len || tg_punkt_is_space(p, c[k]) ||
                        (k + 1 < len && c[k] == '-' && c[k + 1] == '-');
            }
            if (whole) {
                for (shift = k; shift < len && tg_punkt_is_space(p, c[shift]);) shift++;
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
