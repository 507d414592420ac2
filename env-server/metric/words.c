/* The word table: open addressing over entries in order of first appearance. Invariant: every entry
 * holds the slot it stands in, so that a reset touches only what was used. One thread at a time. */
#include "env-server/metric/words.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "env-server/reward/pytext.h"

#include <string.h>

struct tg_word {
    uint64_t hash;
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

static bool is_word(const tg_words *w, const struct tg_word *e, uint64_t hash, const char *word,
                    size_t len) {
    return e->hash == hash && e->len == len && !memcmp(w->bytes + e->at, word, len);
}

static bool grow_table(tg_words *w) {
    size_t size = w->table_size ? 2 * w->table_size : 512;
    uint32_t *table = tg_alloc_array(size, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < w->count; i++) {
        size_t slot = w->entries[i].hash & (size - 1);
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
    uint64_t hash = tg_hash64(word, len);
    size_t slot = hash & (w->table_size - 1);
    for (; w->table[slot]; slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->entries[w->table[slot] - 1], hash, word, len)) return w->table[slot] - 1;
    uint32_t id = (uint32_t)w->count++;
    w->entries[id] = (struct tg_word){hash, w->n_bytes, len, (uint32_t)slot};
    if (len) memcpy(w->bytes + w->n_bytes, word, len);
    w->n_bytes += len;
    w->table[slot] = id + 1;
    return id;
}

bool tg_words_find(const tg_words *w, const char *word, size_t len, uint32_t *id) {
    if (!w->count) return false;
    uint64_t hash = tg_hash64(word, len);
    for (size_t slot = hash & (w->table_size - 1); w->table[slot];
         slot = (slot + 1) & (w->table_size - 1))
        if (is_word(w, &w->entries[w->table[slot] - 1], hash, word, len)) {
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

void tg_words_split(tg_words *w, const char *text, size_t len, tg_wids *out) {
    size_t pos = 0, word_len;
    const char *word;
    while (tg_py_word(text, len, &pos, &word, &word_len))
        tg_wids_push(out, tg_words_id(w, word, word_len));
}
