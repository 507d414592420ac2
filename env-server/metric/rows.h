/* The rows of the registry: what is built, each in its own file, and the metrics of RL4LMs that are
 * known with all their keys but not built into this version (planned.c). */
#ifndef TG_ENV_METRIC_ROWS_H
#define TG_ENV_METRIC_ROWS_H

#include "env-server/metric/metric.h"

extern const tg_metric_ops tg_metric_increasing_numbers, tg_metric_dates, tg_metric_rouge,
    tg_metric_bleu, tg_metric_google_bleu, tg_metric_sacre_bleu, tg_metric_chrf, tg_metric_ter,
    tg_metric_rouge_l_max;

extern const tg_metric_ops tg_metric_parent_totto, tg_metric_bleu_totto, tg_metric_meteor,
    tg_metric_cider, tg_metric_spice, tg_metric_spider, tg_metric_sari, tg_metric_self_bleu,
    tg_metric_distinct, tg_metric_length, tg_metric_diversity, tg_metric_concept_cover;

extern const tg_metric_ops tg_metric_learned_reward, tg_metric_bert_score, tg_metric_bleurt,
    tg_metric_intent_accuracy, tg_metric_emotion_accuracy, tg_metric_causal_perplexity;

extern const tg_entry tg_metric_planned[]; /* ends with a row without a name */

#endif
