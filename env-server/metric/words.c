/* The word table: open addressing over entries in order of first appearance.
 * Invariant: every entry holds the slot it stands in, so that a reset touches
 * only what was used. One thread at a time. */
#include "env-server/metric/words.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "env-server/reward/pytext.h"

#include <string.h>

/* a and b hold all bytes of a word of up to 16, so that most comparisons never see the text. */
struct tg_word {
    uint64_t a, b;
    size_t at, len; /* in bytes */
    uint32_t slot;
};

void tg_wids_reset(tg_wids *ids) {
    ids->n = 0;
}

bool tg_wids_reserve(tg_wids *ids, size_t cap) {
    if (cap <= ids->cap) return true;
    size_t wanted = ids->cap ? 2 * ids->cap : 128;
    if (wanted < cap) wanted = cap;
    uint32_t *v = tg_realloc_array(ids->v, wanted, sizeof *v);
    if (!v) {
        ids->failed = true;
        return false;
    }
    ids->v = v, ids->cap = wanted;
    return true;
}

void tg_wids_push(tg_wids *ids, uint32_t id) {
    if (ids->n == ids->cap && !tg_wids_reserve(ids, ids->n + 1)) return;
    ids->v[ids->n++] = id;
}

void tg_wids_fini(tg_wids *ids) {
    tg_free(ids->v);
    memset(ids, 0, sizeof *ids);
}

static void summary(struct tg_word *e, const char *word, size_t len) {
    uint64_t a = 0, b = 0;
    uint32_t c = 0, d = 0;
    if (len > 16)
        a = tg_hash64(word, len);
    else if (len >= 8) {
        memcpy(&a, word, 8);
        memcpy(&b, word + len - 8, 8);
    } else if (len >= 4) {
        memcpy(&c, word, 4);
        memcpy(&d, word + len - 4, 4);
        a = c, b = d;
    } else if (len)
        a = (uint64_t)(unsigned char)word[0] << 16 | (uint64_t)(unsigned char)word[len / 2] << 8 |
            (unsigned char)word[len - 1];
    *e = (struct tg_word){.a = a, .b = b, .len = len};
}

static size_t first_slot(const struct tg_word *e, size_t size) {
    uint64_t h = (e->a ^ e->len * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 32 ^ e->b) * 0xd6e8feb86659fd93u;
    return (size_t)(h >> 32) & (size - 1);
}

static bool is_word(const tg_words *w, const struct tg_word *e, const struct tg_word *x,
                    const char *word) {
    return e->a == x->a && e->b == x->b && e->len == x->len &&
           (x->len <= 16 || !memcmp(w->bytes + e->at, word, x->len));
}

static bool grow_table(tg_words *w) {
    size_t size = w->table_size ? 2 * w->table_size : 512;
    uint32_t *table = tg_alloc_array(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < w->count; i++) {
        size_t slot = first_slot(&w->entries[i], size);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = (uint32_t)i + 1;
        w->entries[i].slot = (uint32_t)slot;
    }
    tg_free(w->table);
    w->table = table, w->table_size = size;
    return true;
}

static bool grow_entries(tg_words *w) {
    size_t cap = w->cap ? 2 * w->cap : 256;
    struct tg_word *entries =
        cap < UINT32_MAX ? tg_realloc_array(w->entries, cap, sizeof *entries) : NULL;
    if (!entries) return false;
    w->entries = entries, w->cap = cap;
    return true;
}

static bool grow_bytes(tg_words *w, size_t len) {
    if (w->n_bytes + len <= w->cap_bytes) return true;
    size_t cap = w->cap_bytes ? 2 * w->cap_bytes : 4096;
    if (cap < w->n_bytes + len) cap = w->n_bytes + len;
    char *bytes = tg_realloc_array(w->bytes, cap, 1);
    if (!bytes) return false;
    w->bytes = bytes, w->cap_bytes = cap;
    return true;
}

uint32_t tg_words_id(tg_words *w, const char *word, size_t len) {
    if ((2 * w->count >= w->table_size && !grow_table(w)) ||
        (w->count == w->cap && !grow_entries(w)) || !grow_bytes(w, len)) {
        w->failed = true;
        return 0;
    }
    struct tg_word x;
    summary(&x, word, len);
    size_t slot = first_slot(&x, w->table_size);
    for (; w->table[slot]; slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->entries[w->table[slot] - 1], &x, word)) return w->table[slot] - 1;
    uint32_t id = (uint32_t)w->count++;
    x.at = w->n_bytes, x.slot = (uint32_t)slot;
    w->entries[id] = x;
    if (len) memcpy(w->bytes + w->n_bytes, word, len);
    w->n_bytes += len;
    w->table[slot] = id + 1;
    return id;
}

bool tg_words_find(const tg_words *w, const char *word, size_t len, uint32_t *id) {
    if (!w->count) return false;
    struct tg_word x;
    summary(&x, word, len);
    for (size_t slot = first_slot(&x, w->table_size); w->table[slot];
         slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->entries[w->table[slot] - 1], &x, word)) {
            *id = w->table[slot] - 1;
            return true;
        }
    return false;
}

const char *tg_words_text(const tg_words *w, uint32_t id, size_t *len) {
    *len = w->entries[id].len;
    return w->bytes + w->entries[id].at;
}

void tg_words_reset(tg_words *w) {
    for (size_t i = 0; i < w->count; i++) w->table[w->entries[i].slot] = 0;
    w->count = 0, w->n_bytes = 0;
}

void tg_words_fini(tg_words *w) {
    tg_free(w->entries);
    tg_free(w->table);
    tg_free(w->bytes);
    memset(w, 0, sizeof *w);
}

/* Does a space of str.split() stand at text[0]? ASCII is decided here. */
static inline bool space_at(const char *text, size_t len, size_t *bytes) {
    unsigned char c = (unsigned char)text[0];
    *bytes = 1;
    if (c < 0x80) return c <= ' ' && (c == ' ' || (c >= 0x09 && c <= 0x0D) || c >= 0x1C);
    return tg_py_isspace(tg_py_char(text, len, bytes));
}

void tg_words_split(tg_words *w, const char *text, size_t len, tg_wids *out) {
    size_t at = 0, n;
    for (;;) {
        while (at < len && space_at(text + at, len - at, &n)) at += n;
        size_t start = at;
        while (at < len && !space_at(text + at, len - at, &n)) at += n;
        if (at == start) return;
        tg_wids_push(out, tg_words_id(w, text + start, at - start));
    }
}
