/* BERTScore (Zhang et al. 2020) with the arithmetic of the package bert-score: cosines of the states of a layer, each token matched with its
 * best, special tokens without weight. Neither idf nor rescaling.
 *
 * Read-only after opening; values may run on any thread, several at a time. */
#ifndef TG_ENV_BERT_SCORE_H
#define TG_ENV_BERT_SCORE_H

#include "env-server/judge/judge.h"
#include "env-server/metric/metric.h"

typedef struct tg_bert_score {
    tg_judge *judge;
    bool space_first; /* a text is read behind a space, as RoBERTa's words are */
    tg_ids special;   /* ids without weight */
} tg_bert_score;

typedef struct tg_bert_score_value {
    float precision, recall, f1;
} tg_bert_score_value;

/* The options of metric and reward. */
typedef struct tg_bert_score_options {
    const char *language, *model_name;
    int64_t num_layers;
    bool add_prefix_space;
} tg_bert_score_options;
extern const tg_opt tg_bert_score_table[];

/* model_name NULL: the language's. num_layers INT64_MIN: as many as bert-score takes of that model; TG_CONFIG where it does not say. */
tg_status tg_bert_score_open(tg_bert_score *b, const tg_open_context *ctx,
                             const tg_bert_score_options *o, tg_error *err) TG_MUST_CHECK;
void tg_bert_score_close(tg_bert_score *b);

/* Each number is the best over the references of an item. TG_DATA: an item without one. */
tg_status tg_bert_score_values(const tg_bert_score *b, const tg_metric_item *items, size_t n,
                               tg_bert_score_value *values, tg_error *err) TG_MUST_CHECK;

#endif
