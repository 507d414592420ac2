/* What the rounds of CIDEr-D share: see cider.c. Private to them. */
#ifndef TG_ENV_CIDER_TEXTS_H
#define TG_ENV_CIDER_TEXTS_H

#include "common/base/threads.h"
#include "env-server/metric/cider_df.h"
#include "env-server/metric/metric.h"

enum { TG_CIDER_LINE = 64 };

/* Consecutive items and their words. Threads do not write to the same line of the cache. */
typedef struct tg_cider_part {
    _Alignas(TG_CIDER_LINE) size_t begin, end; /* items */
    size_t first_text; /* of the corpus's; an item's are its prediction and then its references */
    tg_words words;    /* the first part's get those of all others, too */
    size_t n_words;    /* its own */
    tg_wids ids;       /* of all its texts, end to end */
    size_t *ends;      /* in ids: of each text, behind a 0 */
    uint32_t *number;  /* in the corpus, of each word */
    size_t *counts;    /* how often each word is there */
} tg_cider_part;

/* An n-gram of a text at each of its places, in the text's order: words, pairs and so on. */
typedef struct tg_cider_entry {
    uint32_t id;    /* node of its shard */
    uint32_t count; /* in the text; 0 but at its first place */
    uint32_t match; /* its first place in the item's prediction, + 1; 0: not there */
} tg_cider_entry;

typedef struct tg_cider_shard {
    /* Node.last: its last entry that is a first place, + 1. */
    _Alignas(TG_CIDER_LINE) tg_grams grams;
    uint32_t *shared; /* with frequencies from elsewhere: the same n-gram there, of each node */
    size_t n_shared, cap_shared;
    tg_cider_entry *entries;
    size_t n;
    size_t *starts; /* in entries, of each text */
    size_t places;  /* how many n-grams begin with its words, each order */
} tg_cider_shard;

typedef struct tg_cider_texts tg_cider_texts;
typedef tg_status tg_cider_fn(tg_cider_texts *c, size_t k, tg_error *err);

typedef struct tg_cider_outcome {
    tg_status st;
    tg_error err;
} tg_cider_outcome;

struct tg_cider_texts {
    const tg_metric_item *items;
    size_t n, texts;
    const tg_splitter *splitter;
    const tg_cider_df *df; /* NULL: the items' own */
    const double *idf;     /* by document frequency */
    double *out;
    tg_team *team; /* NULL: the caller's thread */
    size_t k;      /* parts, and shards */
    tg_cider_part *parts;
    tg_cider_shard *shards;
    void *memory;        /* of the shards */
    uint8_t *shard_of;   /* each word; NULL: there is only one */
    uint32_t *elsewhere; /* the number of each word in df */
    tg_cider_fn *work;
    tg_cider_outcome *outcomes;
};

/* Does the work for every part or shard. */
tg_status tg_cider_run(tg_cider_texts *c, tg_cider_fn *work, tg_error *err) TG_MUST_CHECK;
/* Reads the words of all items and divides them among the shards. */
tg_status tg_cider_words(tg_cider_texts *c, tg_error *err) TG_MUST_CHECK;
/* Counts their n-grams. */
tg_status tg_cider_count(tg_cider_texts *c, tg_error *err) TG_MUST_CHECK;
/* The places of a text whose words are of the shard, in at: how many. */
size_t tg_cider_places(const tg_cider_texts *c, size_t k, const uint32_t *words, size_t n,
                       uint32_t *at);

#endif
