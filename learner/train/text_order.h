/* Which texts a supervised step takes: a keyed permutation of them for each epoch, so any step can be reached without replaying those
 * before it. */
#ifndef TG_TRAIN_TEXT_ORDER_H
#define TG_TRAIN_TEXT_ORDER_H

#include "learner/train/corpus.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_text_order {
    uint64_t seed;
    int64_t n; /* texts */
    int64_t steps_per_epoch, texts_per_step;
    bool takes_rest; /* the last step of an epoch has all that are left */
} tg_text_order;

typedef struct tg_text_range {
    int64_t epoch, first, end; /* positions within the epoch's permutation */
} tg_text_range;

tg_text_range tg_text_order_step(const tg_text_order *o, int64_t step);
int64_t tg_text_order_at(const tg_text_order *o, const tg_text_range *r, int64_t i);
/* What passes over those steps need of `caps`, to which batches are cut (as tg_packer_add does). Of very many steps only the first are
 * looked at. */
tg_pass_caps tg_text_order_caps(const tg_text_order *o, const tg_corpus *c, tg_pass_caps caps,
                                int64_t first, int64_t end);

#endif
