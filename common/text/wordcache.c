/* 2^14 entries of 64 bytes, one cache line each. Owned by one scratch (scratch.h), so no lock. */
#include "common/text/wordcache.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"

#include <string.h>

enum { SLOTS = 1 << 14 };

struct tg_wordcache {
    tg_wordcache_entry slot[SLOTS];
};

tg_wordcache *tg_wordcache_create(void) {
    return tg_alloc(sizeof(tg_wordcache));
}

void tg_wordcache_destroy(tg_wordcache **c) {
    tg_free(*c);
    *c = NULL;
}

tg_wordcache_entry *tg_wordcache_find(tg_wordcache *c, const char *word, size_t len, bool *hit) {
    tg_wordcache_entry *e = &c->slot[tg_hash64(word, len) & (SLOTS - 1)];
    *hit = e->len == len && !memcmp(e->word, word, len);
    return e;
}

void tg_wordcache_put(tg_wordcache_entry *slot, const char *word, size_t len, const int32_t *ids,
                      size_t n) {
    if (n > TG_WORDCACHE_MAX_IDS) return;
    slot->len = (uint8_t)len, slot->n = (uint8_t)n;
    memcpy(slot->word, word, len);
    memcpy(slot->ids, ids, n * sizeof *ids);
}
