/* The n-gram trie: children are found by a hash of (parent, word). Invariant: table slots hold node
 * numbers, 0 free; every node knows its slot. One thread at a time. */
#include "env-server/metric/ngram.h"

#include "common/base/alloc.h"

#include <string.h>

static size_t slot_of(const tg_ngrams *g, uint32_t parent, uint32_t word) {
    uint64_t h = (((uint64_t)parent << 32) | word) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32) & (g->table_size - 1);
}

static bool grow(tg_ngrams *g) {
    size_t cap = g->cap ? 2 * g->cap : 1024;
    if (cap >= UINT32_MAX / 4) return false;
    tg_ngram *nodes = tg_realloc_array(g->nodes, cap, sizeof *nodes);
    if (!nodes) return false;
    g->nodes = nodes;
    if (!g->cap) memset(&nodes[0], 0, sizeof *nodes);
    uint32_t *table = tg_alloc_array(2 * cap, sizeof *table);
    if (!table) return false;
    tg_free(g->table);
    g->table = table, g->table_size = 2 * cap, g->cap = cap;
    for (size_t i = 1; i <= g->count; i++) {
        size_t slot = slot_of(g, nodes[i].parent, nodes[i].word);
        while (table[slot]) slot = (slot + 1) & (g->table_size - 1);
        table[slot] = (uint32_t)i;
        nodes[i].slot = (uint32_t)slot;
    }
    return true;
}

uint32_t tg_ngrams_child(tg_ngrams *g, uint32_t parent, uint32_t word) {
    if (g->count + 1 >= g->cap && !grow(g)) {
        g->failed = true;
        return 0;
    }
    size_t slot = slot_of(g, parent, word);
    for (uint32_t at; (at = g->table[slot]); slot = (slot + 1) & (g->table_size - 1))
        if (g->nodes[at].parent == parent && g->nodes[at].word == word) return at;
    uint32_t id = (uint32_t)++g->count;
    g->table[slot] = id;
    g->nodes[id] = (tg_ngram){.parent = parent,
                              .word = word,
                              .order = g->nodes[parent].order + 1,
                              .slot = (uint32_t)slot};
    return id;
}

void tg_ngrams_add(tg_ngrams *g, const uint32_t *words, size_t n, unsigned max_order,
                   tg_ngram_side side) {
    for (size_t i = 0; i < n; i++) {
        size_t left = n - i < max_order ? n - i : max_order;
        uint32_t node = 0;
        for (size_t k = 0; k < left; k++) {
            node = tg_ngrams_child(g, node, words[i + k]);
            if (!node) return;
            if (side == TG_NGRAM_HYP)
                g->nodes[node].hyp++;
            else
                g->nodes[node].ref++;
        }
    }
}

void tg_ngrams_meet(tg_ngrams *g, const uint32_t *words, size_t n, unsigned max_order) {
    for (size_t i = 0; i < n && g->count; i++) {
        size_t left = n - i < max_order ? n - i : max_order;
        uint32_t node = 0;
        for (size_t k = 0; k < left; k++) {
            size_t slot = slot_of(g, node, words[i + k]);
            uint32_t at;
            while ((at = g->table[slot]) &&
                   (g->nodes[at].parent != node || g->nodes[at].word != words[i + k]))
                slot = (slot + 1) & (g->table_size - 1);
            if (!at) break; /* nor is there any that goes on from it */
            g->nodes[node = at].ref++;
        }
    }
}

void tg_ngrams_fold(tg_ngrams *g) {
    for (size_t i = 1; i <= g->count; i++) {
        tg_ngram *n = &g->nodes[i];
        if (n->ref > n->best) n->best = n->ref;
        n->ref = 0;
    }
}

void tg_ngrams_match(const tg_ngrams *g, unsigned max_order, uint64_t *match) {
    memset(match, 0, max_order * sizeof *match);
    for (size_t i = 1; i <= g->count; i++) {
        const tg_ngram *n = &g->nodes[i];
        if (n->order <= max_order) match[n->order - 1] += n->hyp < n->best ? n->hyp : n->best;
    }
}

void tg_ngrams_forget(tg_ngrams *g) {
    for (size_t i = 1; i <= g->count; i++) g->nodes[i].ref = g->nodes[i].best = 0;
}

void tg_ngrams_reset(tg_ngrams *g) {
    for (size_t i = 1; i <= g->count; i++) g->table[g->nodes[i].slot] = 0;
    g->count = 0;
}

void tg_ngrams_fini(tg_ngrams *g) {
    tg_free(g->nodes);
    tg_free(g->table);
    memset(g, 0, sizeof *g);
}
