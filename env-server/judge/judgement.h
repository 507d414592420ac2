/* What the neural rewards and metrics compute: one number for each finished text. The files beside this one each fill a tg_judgement; rewards
 * (reward/judged.c) and metrics (metric/judged.c) are thin rows around it.
 *
 * A judgement is read-only after opening; values may run on any thread, several at a time. */
#ifndef TG_ENV_JUDGEMENT_H
#define TG_ENV_JUDGEMENT_H

#include "env-server/entry.h"
#include "env-server/metric/metric.h"

#include <stdint.h>

typedef struct tg_judge tg_judge; /* judge.h */

/* The probability of a label under a classifier. */
typedef struct tg_learned {
    tg_judge *judge;
    size_t label;
    bool with_prompt; /* the text behind its prompt is classified */
} tg_learned;
tg_status tg_learned_open(tg_learned *l, const tg_open_context *ctx, const char *owner,
                          const char *model_name, int64_t label_ix, bool with_prompt,
                          tg_error *err) TG_MUST_CHECK;
void tg_learned_close(tg_learned *l);
tg_status tg_learned_values(const tg_learned *l, const tg_metric_item *items, size_t n,
                            double *values, tg_error *err) TG_MUST_CHECK;

/* 1 where a classifier finds in a reply (with the utterance before it) the label that the sample's meta has, else 0. */
typedef struct tg_match {
    tg_judge *judge;
    const char *key; /* of meta: a list, whose first number counts */
    int64_t first;   /* that number for label 0 */
} tg_match;
tg_status tg_match_open(tg_match *m, const tg_open_context *ctx, const char *owner,
                        const char *model_name, const char *key, int64_t first,
                        tg_error *err) TG_MUST_CHECK;
void tg_match_close(tg_match *m);
tg_status tg_match_values(const tg_match *m, const tg_metric_item *items, size_t n, double *values,
                          tg_error *err) TG_MUST_CHECK;
/* RL4LMs's classifier of DailyDialog's intents, which meta counts from 1. */
#define TG_INTENT_MODEL "rajkumarrrk/roberta-daily-dialog-intent-classifier"

/* BLEURT: what a regression model says of (reference, text), the best of all references; with as_list of the one text that Python makes
 * of the list of them. */
typedef struct tg_bleurt {
    tg_judge *judge;
    bool as_list;
} tg_bleurt;
#define TG_BLEURT_MODEL "bleurt-base-128"
tg_status tg_bleurt_open(tg_bleurt *b, const tg_open_context *ctx, const char *owner,
                         const char *model_name, tg_error *err) TG_MUST_CHECK;
void tg_bleurt_close(tg_bleurt *b);
tg_status tg_bleurt_values(const tg_bleurt *b, const tg_metric_item *items, size_t n,
                           double *values, tg_error *err) TG_MUST_CHECK;

/* The probability that a seq2seq model answers a text with "good" rather than with "bad". */
typedef struct tg_preference {
    tg_judge *judge;
    int32_t good_bad[2];
} tg_preference;
tg_status tg_preference_open(tg_preference *p, const tg_open_context *ctx, const char *owner,
                             const char *model_name, tg_error *err) TG_MUST_CHECK;
void tg_preference_close(tg_preference *p);
tg_status tg_preference_values(const tg_preference *p, const tg_metric_item *items, size_t n,
                               double *values, tg_error *err) TG_MUST_CHECK;

#endif
