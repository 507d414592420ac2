/* N-grams as small numbers: every distinct n-gram is a node of a trie, found by the node of the n-gram without its last
 * word and by that word. Node 0 is the empty n-gram; a node's parent has a smaller number.
 *
 *     uint32_t nodes[] = {0, 0}, words[] = {7, 9};
 *     tg_grams_extend(&g, nodes, words, 2, err);    // nodes: the words 7 and 9
 *
 * A zeroed trie is empty. One thread at a time writes, any number read. */
#ifndef TG_ENV_METRIC_GRAMS_H
#define TG_ENV_METRIC_GRAMS_H

#include "common/base/status.h"

#include <stdint.h>

enum { TG_GRAMS_NONE = 0xFFFFFFFFu };

typedef struct tg_gram {
    uint32_t parent, word; /* private */
    uint32_t df, last;     /* the caller's, zero at first */
} tg_gram;

typedef struct tg_grams {
    tg_gram *nodes;
    size_t count;               /* with node 0; 0 as long as there is none */
    size_t cap;                 /* of nodes */
    struct tg_gram_slot *table; /* private */
    size_t mask, most_slots;
    void *owner; /* NULL: the caller's memory */
} tg_grams;

/* Of a trie with so many nodes. */
size_t tg_grams_bytes(size_t nodes);
/* An empty trie in memory that is the caller's, aligned to 16. Beyond so many nodes it gets its own. */
void tg_grams_init(tg_grams *g, void *memory, size_t nodes);
/* How many nodes there are expected to be, up to those that there is memory for: the fewer, the faster they are found. */
void tg_grams_expect(tg_grams *g, size_t nodes);
/* Replaces each of n nodes by that of its n-gram with the word behind it, a new one for a new n-gram. */
tg_status tg_grams_extend(tg_grams *g, uint32_t *nodes, const uint32_t *words, size_t n,
                          tg_error *err) TG_MUST_CHECK;
/* The node, or TG_GRAMS_NONE. */
uint32_t tg_grams_find(const tg_grams *g, uint32_t parent, uint32_t word);
void tg_grams_fini(tg_grams *g);

#endif
