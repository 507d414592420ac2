/* The rule tokenizer: pieces between white space, affixes cut off one pair at a time until an exception or
 * nothing is left, infixes and URLs of the rest; then exceptions that the affix rules had cut apart are put together
 * again. Invariant of the maps: a value has bit k set where an exception is cut before its k-th character. */
#include "env-server/metric/spacy.h"

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "env-server/metric/pystr.h"
#include "env-server/metric/spacy_chars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 24 }; /* characters of an exception */

struct tg_spacy {
    tg_spacy_rules rules;
    tg_map special;  /* exception: its cuts */
    tg_map rejoined; /* exception that affix rules cut: where they do */
};

/* ---- tokens ------------------------------------------------------------------------------------ */

static bool add_token(tg_spacy_work *w, size_t begin, size_t end) {
    if (w->n == w->cap) {
        size_t cap = w->cap ? 2 * w->cap : 64;
        tg_spacy_token *tokens = tg_realloc_array(w->tokens, cap, sizeof *tokens);
        if (!tokens) {
            w->failed = true;
            return false;
        }
        w->tokens = tokens, w->cap = cap;
    }
    w->tokens[w->n++] = (tg_spacy_token){(uint32_t)begin, (uint32_t)end};
    return true;
}

static bool find(const tg_map *m, const tg_spacy_work *w, size_t begin, size_t end,
                 uint64_t *value) {
    return end - begin <= LONGEST &&
           tg_map_get(m, w->bytes + w->offsets[begin], w->offsets[end] - w->offsets[begin], value);
}

static void add_cut(tg_spacy_work *w, size_t begin, size_t end, uint64_t cuts) {
    size_t start = begin;
    for (size_t i = begin + 1; i < end; i++)
        if (cuts >> (i - begin) & 1) add_token(w, start, i), start = i;
    add_token(w, start, end);
}

static void add_infixes(const tg_spacy *s, tg_spacy_work *w, size_t begin, size_t end) {
    const uint32_t *c = w->text.c + begin;
    size_t n = end - begin, start = 0, from = 0, b, e;
    while (tg_spacy_infix(c, n, from, s->rules, &b, &e)) {
        from = e;
        if (!b) continue;
        if (b != start) add_token(w, begin + start, begin + b);
        add_token(w, begin + b, begin + e);
        start = e;
    }
    if (start < n) add_token(w, begin + start, end);
}

/* Cuts affixes off [*begin, *end); prefixes become tokens at once, suffixes are returned in order of
 * cutting (the last one comes first in the text). */
static void cut_affixes(const tg_spacy *s, bool specials, tg_spacy_work *w, size_t *begin,
                        size_t *end, tg_points *suffixes) {
    uint64_t cuts;
    suffixes->n = 0;
    while (*begin < *end) {
        const uint32_t *c = w->text.c + *begin;
        size_t n = *end - *begin, before = n;
        if (specials && find(&s->special, w, *begin, *end, &cuts)) return;
        size_t pre = tg_spacy_prefix(c, n, s->rules);
        if (pre && pre < n && specials && find(&s->special, w, *begin + pre, *end, &cuts)) {
            add_token(w, *begin, *begin + pre);
            *begin += pre;
            return;
        }
        size_t seen = s->rules == TG_SPACY_CURRENT ? pre : 0; /* lookbehinds end there */
        size_t suf = tg_spacy_suffix(c + seen, n - seen, s->rules);
        bool keep = suf && suf < n && specials && find(&s->special, w, *begin, *end - suf, &cuts);
        if (suf && (keep || !pre || pre + suf <= n)) {
            if (!tg_points_reserve(suffixes, suffixes->n + 1)) {
                w->failed = true;
                return;
            }
            suffixes->c[suffixes->n++] = (uint32_t)suf;
            *end -= suf;
        }
        if (keep) return;
        if (pre) {
            add_token(w, *begin, *begin + pre);
            *begin += pre;
        }
        if (*end - *begin == before) return;
    }
}

static void tokenize(const tg_spacy *s, bool specials, tg_spacy_work *w, size_t begin, size_t end,
                     tg_points *suffixes) {
    uint64_t cuts;
    if (specials && find(&s->special, w, begin, end, &cuts)) {
        add_cut(w, begin, end, cuts);
        return;
    }
    cut_affixes(s, specials, w, &begin, &end, suffixes);
    if (begin < end) {
        if (specials && find(&s->special, w, begin, end, &cuts))
            add_cut(w, begin, end, cuts);
        else if (tg_spacy_url(w->text.c + begin, end - begin, s->rules))
            add_token(w, begin, end);
        else
            add_infixes(s, w, begin, end);
    }
    for (size_t i = suffixes->n; i-- > 0;) {
        add_token(w, end, end + suffixes->c[i]);
        end += suffixes->c[i];
    }
}

/* ---- exceptions that were cut apart ------------------------------------------------------------ */

typedef struct match {
    uint32_t first, end; /* tokens */
} match;

static int by_length(const void *pa, const void *pb) {
    const match *a = pa, *b = pb;
    uint32_t la = a->end - a->first, lb = b->end - b->first;
    if (la != lb) return la > lb ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Finds runs of tokens that spell an exception with its usual cuts, white space between them or not. */
static size_t find_matches(const tg_spacy *s, const tg_spacy_work *w, match *out, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        char text[4 * LONGEST];
        size_t len = 0, chars = 0;
        uint64_t cuts = 0, want;
        for (size_t j = i; j < w->n; j++) {
            const tg_spacy_token *t = &w->tokens[j];
            size_t bytes = w->offsets[t->end] - w->offsets[t->begin];
            if (chars) cuts |= 1ull << chars;
            chars += t->end - t->begin;
            if (chars > LONGEST || len + bytes > sizeof text) break;
            memcpy(text + len, w->bytes + w->offsets[t->begin], bytes);
            len += bytes;
            if (!tg_map_get(&s->rejoined, text, len, &want) || want != cuts) continue;
            if (out && n < cap) out[n] = (match){(uint32_t)i, (uint32_t)j + 1};
            n++;
        }
    }
    return n;
}

static bool together(const tg_spacy_work *w, const match *m) {
    for (uint32_t i = m->first; i + 1 < m->end; i++)
        if (w->tokens[i].end != w->tokens[i + 1].begin) return false;
    return true;
}

static bool rejoin(const tg_spacy *s, tg_spacy_work *w) {
    size_t n = find_matches(s, w, NULL, 0), old = w->n;
    if (!n) return true;
    match *all = tg_alloc_array(n, sizeof *all);
    uint8_t *seen = tg_alloc_array(old, 1);
    match *at = tg_alloc_array(old, sizeof *at); /* by first token; end 0: none */
    tg_spacy_token *copy = tg_alloc_array(old, sizeof *copy);
    bool ok = all && seen && at && copy;
    if (ok) {
        find_matches(s, w, all, n);
        qsort(all, n, sizeof *all, by_length);
        for (size_t i = 0; i < n; i++) {
            if (!seen[all[i].first] && !seen[all[i].end - 1] && together(w, &all[i]))
                at[all[i].first] = all[i];
            memset(seen + all[i].first, 1, all[i].end - all[i].first);
        }
        memcpy(copy, w->tokens, old * sizeof *copy);
        w->n = 0;
        for (size_t i = 0; i < old;) {
            uint64_t cuts;
            if (at[i].end && find(&s->special, w, copy[i].begin, copy[at[i].end - 1].end, &cuts)) {
                add_cut(w, copy[i].begin, copy[at[i].end - 1].end, cuts);
                i = at[i].end;
            } else {
                add_token(w, copy[i].begin, copy[i].end);
                i++;
            }
        }
    }
    tg_free(all);
    tg_free(seen);
    tg_free(at);
    tg_free(copy);
    return ok && !w->failed;
}

/* ---- texts ------------------------------------------------------------------------------------- */

static bool read_text(tg_spacy_work *w, const char *text, size_t len) {
    w->bytes = text, w->n = 0;
    if (len >= UINT32_MAX / 4 || !tg_points_read(&w->text, text, len)) return false;
    if (w->cap_offsets < w->text.n + 1) {
        uint32_t *o = tg_realloc_array(w->offsets, w->text.n + 64, sizeof *o);
        if (!o) return false;
        w->offsets = o, w->cap_offsets = w->text.n + 64;
    }
    size_t at = 0, step;
    for (size_t i = 0; i < w->text.n; i++, at += step) {
        w->offsets[i] = (uint32_t)at;
        tg_py_point(text + at, len - at, &step);
    }
    w->offsets[w->text.n] = (uint32_t)at;
    return true;
}

/* All tokens of the text; white space in them ends up in tokens of its own, but for single spaces. */
static bool split(const tg_spacy *s, bool specials, tg_spacy_work *w) {
    tg_points suffixes = {0};
    const uint32_t *c = w->text.c;
    for (size_t i = 0, n = w->text.n; i < n;) {
        size_t start = i;
        bool space = tg_py_space(c[i]);
        while (i < n && tg_py_space(c[i]) == space) i++;
        if (!space)
            tokenize(s, specials, w, start, i, &suffixes);
        else if (start + (c[start] == ' ' && start) < i)
            add_token(w, start + (c[start] == ' ' && start), i);
    }
    tg_points_fini(&suffixes);
    return !w->failed;
}

tg_status tg_spacy_words(const tg_spacy *s, const char *text, size_t len, tg_spacy_work *w,
                         tg_nltk_list *out, tg_error *err) {
    tg_nltk_list_clear(out);
    if (!read_text(w, text, len) || !split(s, true, w) || !rejoin(s, w))
        return tg_fail_nomem(err, len);
    tg_status st = TG_OK;
    for (size_t i = 0; i < w->n && st == TG_OK; i++) {
        const tg_spacy_token *t = &w->tokens[i];
        if (!tg_py_space(w->text.c[t->begin]))
            st = tg_nltk_list_add(out, text + w->offsets[t->begin],
                                  w->offsets[t->end] - w->offsets[t->begin], err);
    }
    return st;
}

void tg_spacy_work_fini(tg_spacy_work *w) {
    tg_points_fini(&w->text);
    tg_free(w->offsets);
    tg_free(w->tokens);
    memset(w, 0, sizeof *w);
}

/* ---- the exceptions ---------------------------------------------------------------------------- */

/* Adds the word whose cuts are marked by '+', and the one with curved apostrophes. */
static bool add_exception(tg_map *m, const char *marked) {
    static const char curved[] = "\u2019";
    for (int pass = 0; pass < 2; pass++) {
        char word[4 * LONGEST];
        size_t len = 0, chars = 0;
        uint64_t cuts = 0;
        for (const char *p = marked; *p; p++) {
            if (*p == '+' && p != marked && p[1] && p[1] != '+') {
                cuts |= 1ull << chars;
                continue;
            }
            if (pass && *p == '\'') {
                memcpy(word + len, curved, 3);
                len += 3;
            } else {
                word[len++] = *p;
            }
            chars += ((unsigned char)*p & 0xC0) != 0x80;
        }
        if (!tg_map_set(m, word, len, cuts)) return false;
        if (!strchr(marked, '\'')) break;
    }
    return true;
}

static bool is_ordinary(const char *marked) {
    char word[64];
    size_t n = 0;
    for (const char *p = marked; *p; p++)
        if (*p != '+') word[n++] = *p;
    word[n] = 0;
    for (const char *const *p = tg_spacy_ordinary; *p; p++)
        if (!strcmp(*p, word)) return true;
    return false;
}

static bool add_group(tg_map *m, const tg_spacy_group *g) {
    char marked[64];
    for (const char *stem = g->stems; *stem;) {
        size_t n = strcspn(stem, " ");
        for (const char *end = g->endings; *end;) {
            size_t k = strcspn(end, " ");
            for (int title = 0; title < 2; title++) {
                snprintf(marked, sizeof marked, "%.*s+%.*s", (int)n, stem, (int)k, end);
                if (title) marked[0] = (char)(marked[0] - 32);
                if (!is_ordinary(marked) && !add_exception(m, marked)) return false;
            }
            end += k + (end[k] == ' ');
        }
        stem += n + (stem[n] == ' ');
    }
    return true;
}

static bool add_exceptions(tg_map *m, tg_spacy_rules rules) {
    static const char *const halves[] = {"a.m.", "am", "p.m.", "pm"};
    bool ok = true;
    char marked[32];
    for (const tg_spacy_group *g = tg_spacy_groups; g->stems && ok; g++)
        if (g->only < 0 || g->only == (int)rules) ok = add_group(m, g);
    for (const char *const *p = tg_spacy_cut; *p && ok; p++) ok = add_exception(m, *p);
    for (const char *const *p = tg_spacy_whole; *p && ok; p++) ok = add_exception(m, *p);
    for (int hour = 1; hour <= 12 && ok; hour++)
        for (size_t k = 0; k < 4 && ok; k++) {
            snprintf(marked, sizeof marked, "%d+%s", hour, halves[k]);
            ok = add_exception(m, marked);
        }
    for (const char *u = "cfkCFK"; rules == TG_SPACY_CURRENT && *u && ok; u++) {
        snprintf(marked, sizeof marked, "\u00b0+%c+.", *u);
        ok = add_exception(m, marked);
    }
    return ok;
}

/* Exceptions that the affix rules would cut: remembered with these cuts. */
static bool add_rejoined(tg_spacy *s) {
    tg_spacy_work w = {0};
    bool ok = true;
    for (size_t i = 0; i < s->special.count && ok; i++) {
        const tg_map_entry *e = &s->special.entries[i];
        size_t b, end;
        ok = read_text(&w, e->key, e->key_len);
        if (!ok) break;
        const uint32_t *c = w.text.c;
        if (!tg_spacy_prefix(c, w.text.n, s->rules) && !tg_spacy_suffix(c, w.text.n, s->rules) &&
            !tg_spacy_infix(c, w.text.n, 0, s->rules, &b, &end))
            continue;
        uint64_t cuts = 0;
        ok = split(s, false, &w);
        for (size_t k = 1; k < w.n; k++) cuts |= 1ull << w.tokens[k].begin;
        ok = ok && tg_map_set(&s->rejoined, e->key, e->key_len, cuts);
    }
    tg_spacy_work_fini(&w);
    return ok;
}

tg_status tg_spacy_create(tg_spacy **out, tg_spacy_rules rules, tg_error *err) {
    tg_spacy *s = *out = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->rules = rules;
    if (add_exceptions(&s->special, rules) && add_rejoined(s)) return TG_OK;
    tg_spacy_destroy(out);
    return tg_fail_nomem(err, sizeof *s);
}

void tg_spacy_destroy(tg_spacy **s) {
    if (!*s) return;
    tg_map_fini(&(*s)->special);
    tg_map_fini(&(*s)->rejoined);
    tg_free(*s);
    *s = NULL;
}
