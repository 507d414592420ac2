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

/* One number for each item, from what was opened. */
typedef tg_status tg_judged_values(const void *judged, const tg_metric_item *items, size_t n,
                                   double *values, tg_error *err) TG_MUST_CHECK;

/* The probability of a label under a classifier. */
typedef struct tg_learned {
    tg_judge *judge;
    size_t label;
    bool with_prompt; /* the text behind its prompt is classified */
} tg_learned;
tg_status tg_learned_open(tg_learned *l, const tg_open_context *ctx, const char *owner,
                          const char *model_name, int64_t label_ix, bool with_prompt,
                          tg_error *err) TG_MUST_CHECK;
tg_status tg_learned_start(void *learned, const void *options, const tg_open_context *ctx,
                           tg_error *err) TG_MUST_CHECK; /* with a tg_learned_options */
void tg_learned_close(void *learned);
tg_judged_values tg_learned_values;

/* The options of metric and reward. */
typedef struct tg_learned_options {
    const char *model_name;
    int64_t label_ix, batch_size; /* of the metric alone: batch_size */
    bool include_prompt_for_eval;
} tg_learned_options;
#define TG_LEARNED_ROWS                                                                            \
    TG_OPT_STR_REQUIRED(tg_learned_options, model_name,                                            \
                        "Sequence classifier, as a folder or a name."),                            \
        TG_OPT_INT_REQUIRED(tg_learned_options, label_ix, -65536, 65536,                           \
                            "Label whose probability is the value.")
#define TG_LEARNED_PROMPT_ROW                                                                      \
    TG_OPT_BOOL(tg_learned_options, include_prompt_for_eval, "true",                               \
                "Classify the prompt with the text.")

/* 1 where a classifier finds in a reply (with the utterance before it) the label that the sample's meta has, else 0. */
typedef struct tg_match {
    tg_judge *judge;
    const char *key; /* of meta: a list, whose first number counts */
    int64_t first;   /* that number for label 0 */
} tg_match;
tg_status tg_match_open(tg_match *m, const tg_open_context *ctx, const char *owner,
                        const char *model_name, const char *key, int64_t first,
                        tg_error *err) TG_MUST_CHECK;
void tg_match_close(void *match);
tg_judged_values tg_match_values;
/* RL4LMs's classifier of DailyDialog's intents, which meta counts from 1. */
#define TG_INTENT_MODEL "rajkumarrrk/roberta-daily-dialog-intent-classifier"

/* BLEURT: what a regression model says of (reference, text), the best of all references; with as_list of the one text that Python makes
 * of the list of them. */
typedef struct tg_bleurt {
    tg_judge *judge;
    bool as_list;
} tg_bleurt;
#define TG_BLEURT_MODEL "bleurt-base-128"
tg_status tg_bleurt_start(void *bleurt, const void *options, const tg_open_context *ctx,
                          tg_error *err) TG_MUST_CHECK; /* with a tg_bleurt_options */
void tg_bleurt_close(void *bleurt);
tg_judged_values tg_bleurt_values;

/* The option of metric and reward, which call it by different names. */
typedef struct tg_bleurt_options {
    const char *model;
} tg_bleurt_options;
#define TG_BLEURT_ROW(key)                                                                         \
    TG_OPT_ROW_KEY(key, tg_bleurt_options, model, TG_T_STR, TG_OPT_NULLABLE, TG_BLEURT_MODEL, 0,   \
                   0, NULL, "BLEURT as a Hugging Face folder with one label, or its name.")

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
