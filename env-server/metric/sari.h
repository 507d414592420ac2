/* SARI (Xu et al. 2016), how well a text keeps, deletes and adds n-grams of its source, with the arithmetic of Hugging
 * Face's "sari": 13a words in lower case, orders 1 to 4, 0/0 = 1. */
#ifndef TG_ENV_SARI_H
#define TG_ENV_SARI_H

#include "env-server/metric/bleu_text.h"
#include "env-server/metric/ngram.h"
#include "proto/messages.h"

/* Zeroed at first, reused freely; one thread at a time. */
typedef struct tg_sari {
    tg_words words;
    tg_wids ids;
    tg_bleu_text text;
    tg_ngrams grams;
    uint32_t *source; /* count in the source, by n-gram */
    size_t cap;
} tg_sari;

/* *out is between 0 and 100. The source is the sample's prompt. */
tg_status tg_sari_score(tg_sari *s, const char *text, size_t len, const tg_sample *sample,
                        double *out, tg_error *err) TG_MUST_CHECK;
void tg_sari_fini(tg_sari *s);

#endif
