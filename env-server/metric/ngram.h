/* Counts of n-grams over word ids, of a hypothesis and of references beside it.
 *
 *     tg_ngrams g = {0};
 *     tg_ngrams_add(&g, hyp.v, hyp.n, 4, TG_NGRAM_HYP);
 *     tg_ngrams_add(&g, ref.v, ref.n, 4, TG_NGRAM_REF);
 *     tg_ngrams_fold(&g);                      // before another reference
 *     uint64_t match[4];
 *     tg_ngrams_match(&g, 4, match);           // clipped matches of each order
 *
 * Where only matches are wanted, matcher.h is faster. An n-gram is a node of a trie whose path spells it. Failure is sticky. Not thread safe. */
#ifndef TG_ENV_METRIC_NGRAM_H
#define TG_ENV_METRIC_NGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tg_ngram_side { TG_NGRAM_HYP, TG_NGRAM_REF } tg_ngram_side;

typedef struct tg_ngram {
    uint32_t parent; /* the n-gram without its last word; 0 is the empty one */
    uint32_t word;   /* its last word */
    uint32_t hyp;    /* count in the hypothesis */
    uint32_t ref;    /* count in the reference being added */
    uint32_t best;   /* largest count in a folded reference */
    uint32_t order;
} tg_ngram;

struct tg_ngram_slot;

typedef struct tg_ngrams {
    tg_ngram *nodes; /* read-only; nodes[1 .. count] in order of first appearance */
    size_t count;
    bool failed;
    size_t cap; /* private */
    struct tg_ngram_slot *table;
    size_t table_size;
    uint32_t round; /* of which the slots in use are */
} tg_ngrams;

/* Counts all n-grams of orders 1 .. max_order. */
void tg_ngrams_add(tg_ngrams *g, const uint32_t *words, size_t n, unsigned max_order,
                   tg_ngram_side side);
/* The n-gram `parent` continued by a word, made if it is new; 0: out of memory. */
uint32_t tg_ngrams_child(tg_ngrams *g, uint32_t parent, uint32_t word);
/* Takes the counts of the current reference into `best` and starts another one; not needed behind the last. */
void tg_ngrams_fold(tg_ngrams *g);
/* match[n - 1] = sum over n-grams of min(hyp, largest count in a reference). */
void tg_ngrams_match(const tg_ngrams *g, unsigned max_order, uint64_t *match);
/* Forgets the folded references, keeps the hypothesis. */
void tg_ngrams_forget(tg_ngrams *g);
void tg_ngrams_reset(tg_ngrams *g); /* forgets everything, keeps memory and failure */
void tg_ngrams_fini(tg_ngrams *g);

/* How many n-grams of this order a text of n words has. */
static inline uint64_t tg_ngrams_of(size_t n, unsigned order) {
    return n >= order ? n - order + 1 : 0;
}

#endif
