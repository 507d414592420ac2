/* Edges in one hash table. Read-only once built. */
#include "common/text/trie.h"

#include "common/base/alloc.h"

#include <string.h>

enum { MAX_NODES = (1 << 24) - 1 };

static void insert(tg_trie_edge *edge, size_t mask, tg_trie_edge e) {
    size_t i = (e.key * 0x9e3779b1u) >> 7 & mask;
    while (edge[i].key) i = (i + 1) & mask;
    edge[i] = e;
}

static bool grow(tg_trie *t, size_t slots) {
    tg_trie_edge *edge = tg_alloc_array(slots, sizeof *edge);
    if (!edge) return false;
    for (size_t i = 0; t->edge && i <= t->mask; i++)
        if (t->edge[i].key) insert(edge, slots - 1, t->edge[i]);
    tg_free(t->edge);
    t->edge = edge, t->mask = slots - 1;
    return true;
}

static uint32_t add_node(tg_trie *t) {
    if (t->n_nodes == MAX_NODES) return 0;
    if (t->n_nodes == t->value_cap) {
        size_t cap = t->value_cap ? 2 * t->value_cap : 256;
        int32_t *value = tg_realloc_array(t->value, cap, sizeof *value);
        if (!value) return 0;
        t->value = value, t->value_cap = cap;
    }
    t->value[t->n_nodes] = -1;
    return (uint32_t)t->n_nodes++;
}

bool tg_trie_init(tg_trie *t) {
    memset(t, 0, sizeof *t);
    if (!grow(t, 1024)) return false;
    add_node(t);
    return t->n_nodes == 1;
}

bool tg_trie_set(tg_trie *t, const char *key, size_t len, int32_t value) {
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)key[i];
        uint32_t next = tg_trie_step(t, node, byte);
        if (!next) {
            if (2 * t->n_nodes > t->mask && !grow(t, 2 * (t->mask + 1))) return false;
            next = add_node(t);
            if (!next) return false;
            if (node)
                insert(t->edge, t->mask, (tg_trie_edge){(node << 8 | byte) + 1, next});
            else
                t->root[byte] = next;
        }
        node = next;
    }
    t->value[node] = value;
    return true;
}

void tg_trie_fini(tg_trie *t) {
    tg_free(t->edge);
    tg_free(t->value);
    memset(t, 0, sizeof *t);
}
