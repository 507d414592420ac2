/* A byte trie: which of many keys does a text start with? One hash look-up a byte. */
#ifndef TG_TEXT_TRIE_H
#define TG_TEXT_TRIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_trie_edge {
    uint32_t key; /* node << 8 | byte, + 1; 0: empty */
    uint32_t child;
} tg_trie_edge;

typedef struct tg_trie {
    tg_trie_edge *edge; /* open addressing, mask + 1 slots, at most half full */
    size_t mask, n_nodes;
    int32_t *value; /* per node; -1: no key ends here */
    size_t value_cap;
    uint32_t root[256]; /* children of the root; 0: none */
} tg_trie;

bool tg_trie_init(tg_trie *t); /* false: out of memory */
/* A key that is there gets the new value. False: out of memory, or 2^24 nodes. */
bool tg_trie_set(tg_trie *t, const char *key, size_t len, int32_t value);
void tg_trie_fini(tg_trie *t);

/* The node below `node` (0 is the root) by one byte; 0: none. */
static inline uint32_t tg_trie_step(const tg_trie *t, uint32_t node, unsigned char byte) {
    if (!node) return t->root[byte];
    uint32_t key = (node << 8 | byte) + 1;
    for (size_t i = (key * 0x9e3779b1u) >> 7 & t->mask;; i = (i + 1) & t->mask) {
        if (t->edge[i].key == key) return t->edge[i].child;
        if (!t->edge[i].key) return 0;
    }
}

/* Length of the longest key that s starts with; 0: none. */
static inline size_t tg_trie_longest(const tg_trie *t, const char *s, size_t len) {
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        node = tg_trie_step(t, node, (unsigned char)s[i]);
        if (!node) break;
        if (t->value[node] >= 0) best = i + 1;
    }
    return best;
}

#endif
