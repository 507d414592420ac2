/* The trie of n-grams: nodes in order of first appearance, found by open addressing.
 * Nodes and table are one block; the table begins small and grows within it. Invariant: at most two
 * thirds of the table are in use. */
#include "env-server/metric/grams.h"

#include "common/base/alloc.h"
#include "env-server/metric/pages.h"

#include <string.h>

typedef struct tg_gram_slot {
    uint32_t id;  /* of a node; 0: free */
    uint32_t tag; /* of its hash: nodes of others need not be looked at */
} slot;

enum { BLOCK = 128, LEAST = 512 };

static inline uint64_t hash(uint32_t parent, uint32_t word) {
    return ((uint64_t)parent << 32 | word) * 0x9E3779B97F4A7C15u;
}

static inline slot *first_slot(const tg_grams *g, uint64_t h) {
    return &g->table[(size_t)(h >> 29) & g->mask];
}

/* Where the n-gram is, or would be. */
static inline slot *slot_of(const tg_grams *g, uint64_t h, uint32_t parent, uint32_t word) {
    slot *s = first_slot(g, h);
    for (; s->id; s = s == g->table + g->mask ? g->table : s + 1) {
        const tg_gram *n = &g->nodes[s->id];
        if (s->tag == (uint32_t)h && n->parent == parent && n->word == word) break;
    }
    return s;
}

/* A table of so many slots, a power of two. */
static void fill_table(tg_grams *g, size_t slots) {
    memset(g->table, 0, slots * sizeof *g->table);
    g->mask = slots - 1;
    for (size_t i = 1; i < g->count; i++) {
        uint64_t h = hash(g->nodes[i].parent, g->nodes[i].word);
        slot *s = first_slot(g, h);
        while (s->id) s = s == g->table + g->mask ? g->table : s + 1;
        *s = (slot){(uint32_t)i, (uint32_t)h};
    }
}

/* Slots for so many nodes, a power of two. */
static size_t slots_for(size_t nodes) {
    size_t slots = LEAST;
    while (slots / 3 * 2 < nodes) slots *= 2;
    return slots;
}

size_t tg_grams_bytes(size_t nodes) {
    return (nodes + 1) * sizeof(tg_gram) + slots_for(nodes + 1) * sizeof(slot);
}

/* Keeps the nodes that g has. */
static void move_to(tg_grams *g, void *memory, size_t nodes) {
    tg_gram *to = memory;
    to[0] = (tg_gram){0};
    if (g->count) memcpy(to, g->nodes, g->count * sizeof *to);
    tg_free(g->owner);
    g->owner = NULL, g->nodes = to, g->cap = nodes + 1;
    if (!g->count) g->count = 1;
    g->table = (slot *)(void *)(to + g->cap), g->most_slots = slots_for(g->cap);
    fill_table(g, g->mask ? g->mask + 1 : LEAST);
}

void tg_grams_init(tg_grams *g, void *memory, size_t nodes) {
    *g = (tg_grams){0};
    move_to(g, memory, nodes);
}

void tg_grams_expect(tg_grams *g, size_t nodes) {
    size_t slots = g->mask + 1;
    while (slots < g->most_slots && slots / 2 < nodes) slots *= 2;
    if (slots > g->mask + 1) fill_table(g, slots);
}

static tg_status grow(tg_grams *g, size_t nodes, tg_error *err) {
    if (nodes < 2 * g->cap) nodes = 2 * g->cap;
    if (nodes > UINT32_MAX / 2)
        return tg_fail(err, TG_UNSUPPORTED, "more than %u different n-grams", UINT32_MAX / 4);
    void *owner, *memory = tg_pages_alloc(tg_grams_bytes(nodes), 1, &owner);
    if (!memory) return tg_fail_nomem(err, tg_grams_bytes(nodes));
    move_to(g, memory, nodes);
    g->owner = owner;
    return TG_OK;
}

static inline uint32_t add(tg_grams *g, uint64_t h, uint32_t parent, uint32_t word) {
    slot *s = slot_of(g, h, parent, word);
    if (s->id) return s->id;
    g->nodes[g->count] = (tg_gram){.parent = parent, .word = word};
    *s = (slot){(uint32_t)g->count, (uint32_t)h};
    return (uint32_t)g->count++;
}

/* The table is larger than the cache: all places of a block are asked for before the first is used. */
static void extend_block(tg_grams *g, uint32_t *nodes, const uint32_t *words, size_t n) {
    uint64_t h[BLOCK];
    for (size_t i = 0; i < n; i++) {
        h[i] = hash(nodes[i], words[i]);
        __builtin_prefetch(first_slot(g, h[i]), 1);
    }
    for (size_t i = 0; i < n; i++) __builtin_prefetch(&g->nodes[first_slot(g, h[i])->id], 1);
    for (size_t i = 0; i < n; i++) nodes[i] = add(g, h[i], nodes[i], words[i]);
}

tg_status tg_grams_extend(tg_grams *g, uint32_t *nodes, const uint32_t *words, size_t n,
                          tg_error *err) {
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t len = n - at < BLOCK ? n - at : BLOCK;
        if (g->count + len > g->cap) {
            tg_status st = grow(g, g->count + len, err);
            if (st != TG_OK) return st;
        }
        if (g->count + len > g->mask / 2) tg_grams_expect(g, 2 * (g->count + len));
        extend_block(g, nodes + at, words + at, len);
    }
    return TG_OK;
}

uint32_t tg_grams_find(const tg_grams *g, uint32_t parent, uint32_t word) {
    uint32_t id = g->table ? slot_of(g, hash(parent, word), parent, word)->id : 0;
    return id ? id : TG_GRAMS_NONE;
}

void tg_grams_fini(tg_grams *g) {
    tg_free(g->owner);
    *g = (tg_grams){0};
}
