/* Open addressing over indices into an entry array, so iteration order is insertion order. */
#include "common/base/map.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"

#include <string.h>

static size_t slot_of(const tg_map *m, const char *key, size_t len, uint64_t hash) {
    size_t mask = m->table_size - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t index = m->table[i];
        if (!index) return i;
        const tg_map_entry *e = &m->entries[index - 1];
        if (e->hash == hash && e->key_len == len && !memcmp(e->key, key, len)) return i;
    }
}

static bool grow(tg_map *m) {
    size_t cap = m->cap ? m->cap * 2 : 16;
    tg_map_entry *entries = tg_realloc_array(m->entries, cap, sizeof *entries);
    if (!entries) return false;
    m->entries = entries;
    uint32_t *table = tg_alloc_array(cap * 2, sizeof *table);
    if (!table) return false;
    tg_free(m->table);
    m->table = table;
    m->table_size = cap * 2;
    m->cap = cap;
    for (size_t i = 0; i < m->count; i++) {
        const tg_map_entry *e = &m->entries[i];
        m->table[slot_of(m, e->key, e->key_len, e->hash)] = (uint32_t)i + 1;
    }
    return true;
}

bool tg_map_set(tg_map *m, const char *key, size_t key_len, uint64_t value) {
    if (m->count == m->cap && !grow(m)) return false;
    uint64_t hash = tg_hash64(key, key_len);
    size_t slot = slot_of(m, key, key_len, hash);
    if (m->table[slot]) {
        m->entries[m->table[slot] - 1].value = value;
        return true;
    }
    char *copy = tg_strndup(key, key_len);
    if (!copy) return false;
    m->entries[m->count] = (tg_map_entry){copy, key_len, value, hash};
    m->table[slot] = (uint32_t)++m->count;
    return true;
}

bool tg_map_get(const tg_map *m, const char *key, size_t key_len, uint64_t *value) {
    if (!m->count) return false;
    size_t slot = slot_of(m, key, key_len, tg_hash64(key, key_len));
    if (!m->table[slot]) return false;
    if (value) *value = m->entries[m->table[slot] - 1].value;
    return true;
}

bool tg_map_has(const tg_map *m, const char *key) {
    return tg_map_get(m, key, strlen(key), NULL);
}

void tg_map_fini(tg_map *m) {
    for (size_t i = 0; i < m->count; i++) tg_free((char *)m->entries[i].key);
    tg_free(m->entries);
    tg_free(m->table);
    *m = (tg_map){0};
}
