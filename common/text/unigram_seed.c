/* Substrings that occur often, by sorting all suffixes of the words: a substring is a run of neighbours with a common
 * start. Each run is seen once, from the inside out, by a stack of the runs that are open. */
#include "common/text/unigram_seed.h"

#include "common/base/alloc.h"
#include "common/text/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef struct suffix {
    const char *s;
    uint32_t len; /* to the end of the word */
    uint32_t word;
    uint64_t count;
} suffix;

typedef struct list {
    tg_piece *p;
    size_t n, cap;
} list;

static bool push(list *l, const char *s, size_t len, size_t chars, double score) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 4096;
        tg_piece *p = tg_realloc_array(l->p, cap, sizeof *p);
        if (!p) return false;
        l->p = p, l->cap = cap;
    }
    l->p[l->n++] = (tg_piece){s, (uint32_t)len, (uint32_t)chars, score};
    return true;
}

static int by_text(const void *x, const void *y) {
    const suffix *a = x, *b = y;
    int order = memcmp(a->s, b->s, a->len < b->len ? a->len : b->len);
    if (order) return order;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    return a->word < b->word ? -1 : a->word > b->word;
}

static bool is_start(char c) {
    return ((unsigned char)c & 0xC0) != 0x80;
}

/* Suffixes at every character, cut to max_chars. NULL: out of memory. */
static suffix *collect(const tg_map *words, size_t *n) {
    size_t total = 0;
    for (size_t i = 0; i < words->count; i++) total += words->entries[i].key_len;
    suffix *out = tg_alloc_array(total + 1, sizeof *out);
    *n = 0;
    for (size_t i = 0; out && i < words->count; i++) {
        const tg_map_entry *e = &words->entries[i];
        for (size_t k = 0; k < e->key_len; k++)
            if (is_start(e->key[k]))
                out[(*n)++] =
                    (suffix){e->key + k, (uint32_t)(e->key_len - k), (uint32_t)i, e->value};
    }
    return out;
}

/* Bytes that both start with, in whole characters. */
static size_t common(const suffix *a, const suffix *b) {
    size_t n = a->len < b->len ? a->len : b->len, k = 0;
    while (k < n && a->s[k] == b->s[k]) k++;
    while (k && k < a->len && !is_start(a->s[k])) k--;
    return k;
}

typedef struct open_run {
    size_t len;
    uint64_t count;
    const char *s;
} open_run;

static bool close_run(list *l, open_run r, size_t max_chars) {
    size_t chars = tg_utf8_count(r.s, r.len);
    if (chars < 2 || chars > max_chars || r.count < 2) return true;
    return push(l, r.s, r.len, chars, (double)r.count * (double)chars);
}

/* Walks the sorted suffixes; run[] is the stack of open runs, each longer than the one below. */
static bool find_runs(const suffix *s, size_t n, size_t max_chars, list *out) {
    open_run *run = tg_alloc_array(1024, sizeof *run);
    size_t depth = 0, cap = 1024;
    bool ok = run != NULL;
    for (size_t i = 0; i <= n && ok; i++) {
        size_t shared = i && i < n ? common(&s[i - 1], &s[i]) : 0;
        uint64_t carried = 0;
        const char *at = NULL;
        while (depth && run[depth - 1].len > shared && ok) {
            run[depth - 1].count += carried;
            ok = close_run(out, run[depth - 1], max_chars);
            carried = run[depth - 1].count, at = run[depth - 1].s;
            depth--;
        }
        if (depth && run[depth - 1].len == shared)
            run[depth - 1].count += carried;
        else if (shared)
            run[depth++] = (open_run){shared, carried, at};
        if (i == n) break;
        if (depth + 2 >= cap) {
            open_run *more = tg_realloc_array(run, 2 * cap, sizeof *run);
            if (!more) ok = false;
            if (more) run = more, cap *= 2;
        }
        /* The suffix itself, to the end of its word. */
        if (ok && depth && run[depth - 1].len == s[i].len)
            run[depth - 1].count += s[i].count;
        else if (ok)
            run[depth++] = (open_run){s[i].len, s[i].count, s[i].s};
    }
    tg_free(run);
    return ok;
}

static int by_score(const void *x, const void *y) {
    const tg_piece *a = x, *b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    int order = memcmp(a->text, b->text, a->len < b->len ? a->len : b->len);
    if (order) return order;
    return a->len < b->len ? -1 : a->len > b->len;
}

static bool find_chars(const tg_map *words, list *out) {
    tg_map chars = {0};
    bool ok = true;
    for (size_t i = 0; i < words->count && ok; i++) {
        const tg_map_entry *e = &words->entries[i];
        for (size_t k = 0; k < e->key_len && ok;) {
            unsigned n;
            uint64_t count = 0;
            tg_utf8_at(e->key + k, &n);
            tg_map_get(&chars, e->key + k, n, &count);
            ok = tg_map_set(&chars, e->key + k, n, count + e->value);
            if (ok && !count) ok = push(out, e->key + k, n, 1, 0);
            k += n;
        }
    }
    for (size_t i = 0; i < out->n && ok; i++) {
        uint64_t count = 0;
        tg_map_get(&chars, out->p[i].text, out->p[i].len, &count);
        out->p[i].score = (double)count;
    }
    tg_map_fini(&chars);
    return ok;
}

tg_status tg_unigram_seeds(const tg_map *words, size_t max_chars, size_t max_seeds, tg_piece **out,
                           size_t *n, tg_error *err) {
    list l = {0}, longer = {0};
    size_t n_suffixes;
    suffix *s = collect(words, &n_suffixes);
    bool ok = s && find_chars(words, &l);
    if (ok) {
        if (l.n) qsort(l.p, l.n, sizeof *l.p, by_score);
        qsort(s, n_suffixes, sizeof *s, by_text);
        ok = find_runs(s, n_suffixes, max_chars, &longer);
    }
    if (ok && longer.n) qsort(longer.p, longer.n, sizeof *longer.p, by_score);
    for (size_t i = 0; i < longer.n && l.n < max_seeds && ok; i++)
        ok = push(&l, longer.p[i].text, longer.p[i].len, longer.p[i].chars, longer.p[i].score);
    tg_free(s);
    tg_free(longer.p);
    *out = l.p, *n = l.n;
    if (ok) return TG_OK;
    tg_free(l.p);
    *out = NULL, *n = 0;
    return tg_fail_nomem(err, n_suffixes * sizeof *s);
}
