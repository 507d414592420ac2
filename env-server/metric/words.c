/* The word table: open addressing over entries in order of first appearance.
 * Invariant: every entry holds the slot it stands in, so that a reset touches
 * only what was used. One thread at a time. */
#include "env-server/metric/words.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "env-server/reward/pytext.h"

#include <string.h>

struct tg_word {
    size_t at, len; /* in bytes */
    uint32_t slot;
};
/* a and b hold all bytes of a word of up to 16, so that most comparisons see neither text nor entry. */
typedef struct tg_word_slot {
    uint64_t a, b;
    uint32_t len; /* its low bits */
    uint32_t id;  /* + 1; 0: free */
} word_slot;

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

typedef struct key {
    uint64_t a, b, hash;
} key;

static inline uint64_t load8(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline uint64_t load4(const char *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline key finish(uint64_t a, uint64_t b, size_t len) {
    uint64_t h = (a ^ len * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
    return (key){a, b, (h ^ h >> 32 ^ b) * 0xd6e8feb86659fd93u};
}

/* The first 16 bytes, zeros behind a shorter word; of a longer one a hash. */
static inline key key_of(const char *word, size_t len) {
    uint64_t a = 0, b = 0;
    if (len > 16)
        a = tg_hash64(word, len);
    else if (len > 8)
        a = load8(word), b = load8(word + len - 8) >> 8 * (16 - len);
    else if (len >= 4)
        a = load4(word) | load4(word + len - 4) << 8 * (len - 4);
    else if (len)
        a = (uint64_t)(unsigned char)word[0] |
            (uint64_t)(unsigned char)word[len / 2] << 8 * (len / 2) |
            (uint64_t)(unsigned char)word[len - 1] << 8 * (len - 1);
    return finish(a, b, len);
}

/* The same where 16 bytes can be read, without a branch for every length. */
static inline key key_at(const char *word, size_t len) {
    if (len > 16) return key_of(word, len);
    size_t low = len < 8 ? len : 8, high = len - low;
    uint64_t a = load8(word) & UINT64_MAX >> 8 * (8 - low) % 64,
             b = high ? load8(word + 8) & UINT64_MAX >> 8 * (8 - high) : 0;
    return finish(len ? a : 0, b, len);
}

static inline size_t first_slot(uint64_t hash, size_t size) {
    return (size_t)(hash >> 32) & (size - 1);
}

static inline bool is_word(const tg_words *w, const word_slot *s, const key *k, const char *word,
                           size_t len) {
    if (s->a != k->a || s->b != k->b || s->len != (uint32_t)len) return false;
    const struct tg_word *e = &w->entries[s->id - 1];
    return len <= 16 || (e->len == len && !memcmp(w->bytes + e->at, word, len));
}

static bool grow_table(tg_words *w, size_t size) {
    word_slot *table = tg_alloc_array(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < w->count; i++) {
        const word_slot *old = &w->table[w->entries[i].slot];
        size_t slot = first_slot(finish(old->a, old->b, w->entries[i].len).hash, size);
        while (table[slot].id) slot = (slot + 1) & (size - 1);
        table[slot] = *old;
        w->entries[i].slot = (uint32_t)slot;
    }
    tg_free(w->table);
    w->table = table, w->table_size = size;
    return true;
}

/* Room for n more words of this many bytes in all. */
static bool reserve(tg_words *w, size_t n, size_t bytes) {
    size_t size = w->table_size ? w->table_size : 512, cap = w->cap ? w->cap : 256;
    while (size / 2 < w->count + n) size *= 2;
    while (cap < w->count + n) cap *= 2;
    if (cap >= UINT32_MAX / 2 || (size != w->table_size && !grow_table(w, size))) goto fail;
    if (cap != w->cap) {
        struct tg_word *entries = tg_realloc_array(w->entries, cap, sizeof *entries);
        if (!entries) goto fail;
        w->entries = entries, w->cap = cap;
    }
    if (w->n_bytes + bytes + 16 > w->cap_bytes) { /* words are written in pieces of 16 */
        size_t wanted = 2 * (w->n_bytes + bytes) + 2048;
        char *to = tg_realloc_array(w->bytes, wanted, 1);
        if (!to) goto fail;
        w->bytes = to, w->cap_bytes = wanted;
    }
    return true;
fail:
    w->failed = true;
    return false;
}

/* There is room for it. */
static inline uint32_t id_of(tg_words *w, const char *word, size_t len, const key *k) {
    size_t slot = first_slot(k->hash, w->table_size);
    for (; w->table[slot].id; slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->table[slot], k, word, len)) return w->table[slot].id - 1;
    uint32_t id = (uint32_t)w->count++;
    w->entries[id] = (struct tg_word){w->n_bytes, len, (uint32_t)slot};
    if (len > 16)
        memcpy(w->bytes + w->n_bytes, word, len);
    else {
        memcpy(w->bytes + w->n_bytes, &k->a, 8);
        memcpy(w->bytes + w->n_bytes + 8, &k->b, 8);
    }
    w->n_bytes += len;
    w->table[slot] = (word_slot){k->a, k->b, (uint32_t)len, id + 1};
    return id;
}

uint32_t tg_words_id_in(tg_words *w, const char *word, size_t len, size_t readable) {
    if ((2 * w->count >= w->table_size || w->count == w->cap ||
         w->n_bytes + len + 16 > w->cap_bytes) &&
        !reserve(w, 1, len))
        return 0;
    key k = readable >= 16 ? key_at(word, len) : key_of(word, len);
    return id_of(w, word, len, &k);
}

uint32_t tg_words_id(tg_words *w, const char *word, size_t len) {
    return tg_words_id_in(w, word, len, len);
}

bool tg_words_find(const tg_words *w, const char *word, size_t len, uint32_t *id) {
    if (!w->count) return false;
    key k = key_of(word, len);
    for (size_t slot = first_slot(k.hash, w->table_size); w->table[slot].id;
         slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->table[slot], &k, word, len)) {
            *id = w->table[slot].id - 1;
            return true;
        }
    return false;
}

const char *tg_words_text(const tg_words *w, uint32_t id, size_t *len) {
    *len = w->entries[id].len;
    return w->bytes + w->entries[id].at;
}

void tg_words_reset(tg_words *w) {
    for (size_t i = 0; i < w->count; i++) w->table[w->entries[i].slot] = (word_slot){0};
    w->count = 0, w->n_bytes = 0;
}

void tg_words_fini(tg_words *w) {
    tg_free(w->entries);
    tg_free(w->table);
    tg_free(w->bytes);
    memset(w, 0, sizeof *w);
}

void tg_words_split(tg_words *w, const char *text, size_t len, tg_wids *out) {
    size_t n, most = len / 2 + 1; /* words */
    const char *word;
    if (!reserve(w, most, len) || !tg_wids_reserve(out, out->n + most)) return;
    uint32_t *to = out->v + out->n;
    for (tg_py_walk walk = tg_py_words(text, len); tg_py_next(&walk, &word, &n);) {
        key k = (size_t)(word - text) + 16 <= len ? key_at(word, n) : key_of(word, n);
        *to++ = id_of(w, word, n, &k);
    }
    out->n = (size_t)(to - out->v);
}
