/* The n-gram trie: children are found by a hash of (parent, word). Invariant: slots of the current round hold the numbers of
 * nodes, all others are free, so that forgetting everything is one step. One thread at a time. */
#include "env-server/metric/ngram.h"

#include "common/base/alloc.h"

#include <string.h>

/* The key stands beside the number, so that a search looks at one place. */
struct tg_ngram_slot {
    uint64_t key;
    uint32_t node, round;
};
typedef struct tg_ngram_slot slot;

static inline uint64_t key_of(uint32_t parent, uint32_t word) {
    return (uint64_t)parent << 32 | word;
}

/* The key's slot, or the free one where it belongs. */
static inline slot *find(const tg_ngrams *g, uint64_t key) {
    size_t mask = g->table_size - 1, at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (g->table[at].round == g->round && g->table[at].key != key) at = (at + 1) & mask;
    return &g->table[at];
}

static bool grow(tg_ngrams *g) {
    size_t cap = g->cap ? 2 * g->cap : 512;
    if (cap >= UINT32_MAX / 4) return false;
    tg_ngram *nodes = tg_realloc_array(g->nodes, cap, sizeof *nodes);
    if (!nodes) return false;
    g->nodes = nodes;
    if (!g->cap) memset(&nodes[0], 0, sizeof *nodes);
    slot *table = tg_alloc_array(2 * cap, sizeof *table);
    if (!table) return false;
    tg_free(g->table);
    g->table = table, g->table_size = 2 * cap, g->cap = cap, g->round = 1;
    for (size_t i = 1; i <= g->count; i++) {
        uint64_t key = key_of(nodes[i].parent, nodes[i].word);
        *find(g, key) = (slot){key, (uint32_t)i, 1};
    }
    return true;
}

/* 0: out of memory. */
static inline uint32_t child(tg_ngrams *g, uint32_t parent, uint32_t word) {
    if (g->count + 1 >= g->cap && !grow(g)) {
        g->failed = true;
        return 0;
    }
    uint64_t key = key_of(parent, word);
    slot *s = find(g, key);
    if (s->round == g->round) return s->node;
    uint32_t id = (uint32_t)++g->count;
    *s = (slot){key, id, g->round};
    g->nodes[id] = (tg_ngram){.parent = parent, .word = word, .order = g->nodes[parent].order + 1};
    return id;
}

uint32_t tg_ngrams_child(tg_ngrams *g, uint32_t parent, uint32_t word) {
    return child(g, parent, word);
}

void tg_ngrams_add(tg_ngrams *g, const uint32_t *words, size_t n, unsigned max_order,
                   tg_ngram_side side) {
    for (size_t i = 0; i < n; i++) {
        size_t left = n - i < max_order ? n - i : max_order;
        uint32_t node = 0;
        for (size_t k = 0; k < left; k++) {
            node = child(g, node, words[i + k]);
            if (!node) return;
            if (side == TG_NGRAM_HYP)
                g->nodes[node].hyp++;
            else
                g->nodes[node].ref++;
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
        uint32_t best = n->best > n->ref ? n->best : n->ref;
        if (n->order <= max_order) match[n->order - 1] += n->hyp < best ? n->hyp : best;
    }
}

void tg_ngrams_forget(tg_ngrams *g) {
    for (size_t i = 1; i <= g->count; i++) g->nodes[i].ref = g->nodes[i].best = 0;
}

void tg_ngrams_reset(tg_ngrams *g) {
    g->count = 0;
    if (!g->table || ++g->round) return;
    memset(g->table, 0, g->table_size * sizeof *g->table); /* the rounds begin anew */
    g->round = 1;
}

void tg_ngrams_fini(tg_ngrams *g) {
    tg_free(g->nodes);
    tg_free(g->table);
    memset(g, 0, sizeof *g);
}
