/* Clipped n-gram matches of a hypothesis with one reference after another, over word ids.
 *
 *     tg_matcher m = {0};
 *     uint64_t match[4];
 *     tg_matcher_hypothesis(&m, hyp.v, hyp.n, 4);      // forgets what was before
 *     tg_matcher_reference(&m, ref.v, ref.n, match);   // with this reference alone
 *     tg_matcher_all(&m, match);                       // with all of them: sum of min(hyp, largest count)
 *     if (m.failed) ...
 *
 * Failure is sticky. Not thread safe. */
#ifndef TG_ENV_METRIC_MATCHER_H
#define TG_ENV_METRIC_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_MATCHER_ORDER = 4, TG_MATCHER_SHORT = 8 };

struct tg_matcher_slot;

typedef struct tg_matcher {
    bool failed;
    unsigned order; /* private from here on */
    /* a short hypothesis: the places of each word as bits, `blocks` numbers of 64 a word */
    size_t blocks; /* 0: a long one */
    uint64_t *places;
    size_t cap_places, n_words;
    uint32_t words[64 * TG_MATCHER_SHORT];
    uint64_t taken[TG_MATCHER_ORDER][TG_MATCHER_SHORT];
    /* a long one: its n-grams */
    uint64_t match[TG_MATCHER_ORDER];
    struct tg_matcher_slot *table;
    unsigned bits;       /* the table has 2^bits slots */
    uint32_t first, now; /* stamps: of the hypothesis, of the text at hand */
} tg_matcher;

/* order: 1 .. TG_MATCHER_ORDER */
void tg_matcher_hypothesis(tg_matcher *m, const uint32_t *words, size_t n, unsigned order);
/* match[k - 1], k up to the order, gets the matches with this reference alone; NULL: not wanted. */
void tg_matcher_reference(tg_matcher *m, const uint32_t *words, size_t n, uint64_t *match);
void tg_matcher_all(const tg_matcher *m, uint64_t *match);
void tg_matcher_fini(tg_matcher *m);

#endif
