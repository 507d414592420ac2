/* ROUGE-1, -2, -L and -Lsum (C.-Y. Lin, "ROUGE: a package for automatic evaluation of summaries",
 * 2004) with the arithmetic of the rouge-score package: lower case, words of a-z and 0-9, Porter stems
 * of words longer than three letters, union LCS over lines for Lsum. */
#ifndef TG_ENV_METRIC_ROUGE_H
#define TG_ENV_METRIC_ROUGE_H

#include "common/base/status.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum tg_rouge_type {
    TG_ROUGE_1,
    TG_ROUGE_2,
    TG_ROUGE_L,
    TG_ROUGE_LSUM,
    TG_ROUGE_TYPES
} tg_rouge_type;

typedef struct tg_prf {
    double precision, recall, f;
} tg_prf;

/* "rouge1", "rouge2", "rougeL", "rougeLsum" */
const char *tg_rouge_name(tg_rouge_type type);
/* -1: no such type. */
int tg_rouge_find(const char *name);

/* Scratch memory for many texts; one thread at a time. */
typedef struct tg_rouge tg_rouge;
tg_status tg_rouge_create(tg_rouge **out, bool stem, tg_error *err) TG_MUST_CHECK;
void tg_rouge_destroy(tg_rouge **r);

/* Of the text that all following tg_rouge_score calls judge. */
tg_status tg_rouge_prediction(tg_rouge *r, const char *text, size_t len,
                              tg_error *err) TG_MUST_CHECK;
tg_status tg_rouge_score(tg_rouge *r, const char *reference, size_t len, tg_prf out[TG_ROUGE_TYPES],
                         tg_error *err) TG_MUST_CHECK;
/* For each type the reference with the largest F (the first of equals). n > 0. */
tg_status tg_rouge_best(tg_rouge *r, const char *const *references, size_t n,
                        tg_prf out[TG_ROUGE_TYPES], tg_error *err) TG_MUST_CHECK;

/* The whole of one sample: against its first reference, its best one, or (compat) against the text
 * that Python makes of the list. Without compat the sample has a reference. */
tg_status tg_rouge_sample(tg_rouge *r, const char *text, size_t len, const tg_sample *s,
                          bool use_single_ref, bool compat, tg_prf out[TG_ROUGE_TYPES],
                          tg_error *err) TG_MUST_CHECK;

#endif
