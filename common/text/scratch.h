/* What one encode or decode call needs besides the tokenizer. Kept between calls, so that a warm
 * call allocates nothing.
 *
 * A tokenizer owns a pool of scratches: a call takes one and gives it back, so any number of
 * threads may share a tokenizer without a lock while they work. */
#ifndef TG_TEXT_SCRATCH_H
#define TG_TEXT_SCRATCH_H

#include "common/text/postproc.h"
#include "common/text/view.h"
#include "common/text/wordcache.h"

#include <pthread.h>

/* One symbol of a word that is being merged; a doubly linked list by index. */
typedef struct tg_symbol {
    int32_t id;
    int32_t prev, next; /* -1: none */
    uint32_t len;
} tg_symbol;

/* A possible merge: the symbol at pos with its right neighbour. */
typedef struct tg_merge_candidate {
    uint32_t rank, pos;
    int32_t id; /* of the result */
} tg_merge_candidate;

/* One code point in the normaliser, and how many characters of its input it stands for: 0 is one
 * for one, +1 was inserted, -n swallowed n more. */
typedef struct tg_point {
    uint32_t cp;
    int32_t change;
    uint32_t class; /* canonical combining class */
    uint32_t order; /* place before the marks were sorted */
} tg_point;

/* Best way to cut a text up to one byte, for the unigram model. */
typedef struct tg_path_node {
    double score;
    uint32_t start; /* where the last token begins; UINT32_MAX: no way leads here */
    int32_t id;
} tg_path_node;

typedef struct tg_scratch {
    tg_buf clean;         /* the text as valid UTF-8, when it was not */
    tg_spans at;          /* code points of the text */
    tg_tokens tokens[2];  /* of the texts of a row */
    tg_aligned normal[2]; /* normalised segment: steps write the one and the other in turn */
    tg_aligned prefixed;  /* with the prefix space */
    tg_aligned spaced;    /* with the spaces of Metaspace */
    tg_point *points;     /* normaliser */
    size_t points_cap;
    tg_buf joined; /* decoder */
    tg_wordcache *words;
    tg_symbol *symbols; /* BPE */
    size_t symbols_cap;
    tg_merge_candidate *heap;
    size_t heap_cap;
    tg_path_node *path; /* unigram */
    size_t path_cap;
    void *match; /* regex.c */
    struct tg_scratch *next;
} tg_scratch;

typedef struct tg_scratch_pool {
    pthread_mutex_t lock;
    tg_scratch *free;
} tg_scratch_pool;

void tg_scratch_pool_init(tg_scratch_pool *p);
tg_scratch *tg_scratch_take(tg_scratch_pool *p); /* NULL: out of memory */
void tg_scratch_give(tg_scratch_pool *p, tg_scratch *s);
void tg_scratch_pool_fini(tg_scratch_pool *p);

#endif
