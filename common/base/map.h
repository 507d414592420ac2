/* A hash map from byte strings to 64-bit values (a pointer or a number), insertion-ordered.
 *
 *     tg_map m = {0};
 *     if (!tg_map_set(&m, "key", 3, 42)) ...   // false: out of memory
 *     uint64_t v;  if (tg_map_get(&m, "key", 3, &v)) ...
 *     for (size_t i = 0; i < m.count; i++) m.entries[i].key ...   // in order of first insertion
 *     tg_map_fini(&m);
 *
 * Keys are copied. Hashing is tg_hash64 (unkeyed): use it for names and vocabularies, not
 * for keys chosen by a hostile peer. */
#ifndef TG_BASE_MAP_H
#define TG_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_map_entry {
    const char *key; /* NUL-terminated copy */
    size_t key_len;
    uint64_t value;
    uint64_t hash;
} tg_map_entry;

typedef struct tg_map {
    tg_map_entry *entries; /* read-only, count of them */
    size_t count;
    size_t cap; /* private */
    uint32_t *table;
    size_t table_size;
} tg_map;

bool tg_map_set(tg_map *m, const char *key, size_t key_len, uint64_t value);
bool tg_map_get(const tg_map *m, const char *key, size_t key_len, uint64_t *value);
bool tg_map_has(const tg_map *m, const char *key);
void tg_map_fini(tg_map *m);

#endif
