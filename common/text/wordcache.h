/* Remembers how short words were cut, so that most words cost one look-up.
 *
 * A fixed, direct-mapped table: no allocation after creation, a collision overwrites. One thread at
 * a time. */
#ifndef TG_TEXT_WORDCACHE_H
#define TG_TEXT_WORDCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_WORDCACHE_MAX_WORD = 30, TG_WORDCACHE_MAX_IDS = 8 };

typedef struct tg_wordcache_entry {
    uint8_t len, n; /* len 0: empty */
    char word[TG_WORDCACHE_MAX_WORD];
    int32_t ids[TG_WORDCACHE_MAX_IDS];
} tg_wordcache_entry;

typedef struct tg_wordcache tg_wordcache;

tg_wordcache *tg_wordcache_create(void); /* NULL: out of memory */
void tg_wordcache_destroy(tg_wordcache **c);

/* The slot of a word of 1..TG_WORDCACHE_MAX_WORD bytes; *hit says whether it holds that word. */
tg_wordcache_entry *tg_wordcache_find(tg_wordcache *c, const char *word, size_t len, bool *hit);
/* Overwrites the slot. */
void tg_wordcache_put(tg_wordcache_entry *slot, const char *word, size_t len, const int32_t *ids,
                      size_t n);

#endif
