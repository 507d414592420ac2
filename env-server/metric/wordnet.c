/* The files of WordNet: a hash table over the lines of each, and reading what stands in a line. */
#include "env-server/metric/wordnet_impl.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"

#include <stdlib.h>
#include <string.h>

static const char *const pos_names[TG_WORDNET_N_POS] = {"noun", "verb", "adj", "adv"};

size_t tg_wordnet_line_end(const tg_filemap *m, size_t at) {
    const unsigned char *end = memchr(m->data + at, '\n', m->len - at);
    return end ? (size_t)(end - m->data) : m->len;
}

size_t tg_wordnet_word_end(const tg_filemap *m, size_t at, size_t end) {
    while (at < end && m->data[at] != ' ') at++;
    return at;
}

static tg_status build(tg_wordnet_table *t, const char *path, tg_error *err) {
    size_t lines = 1, size = 1024;
    if (t->map.len >= UINT32_MAX)
        return tg_fail(err, TG_DATA, "%s: too large for a WordNet file", path);
    for (size_t i = 0; i < t->map.len; i++) lines += t->map.data[i] == '\n';
    while (size < 2 * lines) size *= 2;
    t->slots = tg_alloc_array(size, sizeof *t->slots);
    if (!t->slots) return tg_fail_nomem(err, size * sizeof *t->slots);
    t->mask = size - 1;
    for (size_t at = 0, end; at < t->map.len; at = end + 1) {
        end = tg_wordnet_line_end(&t->map, at);
        size_t n = tg_wordnet_word_end(&t->map, at, end) - at;
        if (n == 0) continue; /* the licence's lines begin with a space */
        size_t slot = tg_hash64(t->map.data + at, n) & t->mask;
        while (t->slots[slot]) slot = (slot + 1) & t->mask;
        t->slots[slot] = (uint32_t)at + 1;
    }
    return TG_OK;
}

bool tg_wordnet_find(const tg_wordnet_table *t, const char *word, size_t len, size_t *at,
                     size_t *end) {
    size_t slot = tg_hash64(word, len) & t->mask;
    for (; t->slots[slot]; slot = (slot + 1) & t->mask) {
        size_t line = t->slots[slot] - 1;
        if (line + len > t->map.len || memcmp(t->map.data + line, word, len) != 0) continue;
        if (line + len < t->map.len && t->map.data[line + len] != ' ' &&
            t->map.data[line + len] != '\n')
            continue;
        *at = line;
        *end = tg_wordnet_line_end(&t->map, line);
        return true;
    }
    return false;
}

bool tg_wordnet_number_at(const tg_filemap *m, size_t *at, size_t end, unsigned base, size_t *out) {
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

bool tg_wordnet_skip_words(const tg_filemap *m, size_t *at, size_t end, size_t n) {
    for (; n; n--) {
        while (*at < end && m->data[*at] == ' ') ++*at;
        if (*at == end) return false;
        *at = tg_wordnet_word_end(m, *at, end);
    }
    return true;
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
    for (size_t p = 0; p < TG_WORDNET_N_POS && st == TG_OK; p++) {
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
    for (size_t p = 0; p < TG_WORDNET_N_POS; p++) {
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
