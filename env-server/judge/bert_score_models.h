/* Defaults of the package bert-score. */
#ifndef TG_ENV_BERT_SCORE_MODELS_H
#define TG_ENV_BERT_SCORE_MODELS_H

const char *tg_bert_score_model(const char *language); /* "en": "roberta-large" */
int tg_bert_score_layers(const char *model);           /* 0: it does not say */

#endif
