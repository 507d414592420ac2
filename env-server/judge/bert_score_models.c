/* Which model bert-score takes for a language, and which layer of a model: its defaults, tuned on WMT16. Models of families that this engine
 * does not have are left out. */
#include "env-server/judge/bert_score_models.h"

#include "common/base/check.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *language, *model;
} by_language[] = {
    {"en", "roberta-large"},
    {"zh", "bert-base-chinese"},
    {"tr", "dbmdz/bert-base-turkish-cased"},
    {"en-sci", "allenai/scibert_scivocab_uncased"},
};

const char *tg_bert_score_model(const char *language) {
    char lower[16];
    size_t n = 0;
    for (; language[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)language[n]);
    lower[n] = '\0';
    for (size_t i = 0; i < TG_COUNT_OF(by_language); i++)
        if (!strcmp(by_language[i].language, lower)) return by_language[i].model;
    return "bert-base-multilingual-cased";
}

static const struct {
    const char *model;
    int layers;
} by_model[] = {
    {"bert-base-uncased", 9},
    {"bert-large-uncased", 18},
    {"bert-base-cased-finetuned-mrpc", 9},
    {"bert-base-multilingual-cased", 9},
    {"bert-base-chinese", 8},
    {"roberta-base", 10},
    {"roberta-large", 17},
    {"roberta-large-mnli", 19},
    {"roberta-base-openai-detector", 7},
    {"roberta-large-openai-detector", 15},
    {"allenai/scibert_scivocab_uncased", 8},
    {"allenai/scibert_scivocab_cased", 9},
    {"nfliu/scibert_basevocab_uncased", 9},
    {"distilroberta-base", 5},
    {"distilbert-base-uncased", 5},
    {"distilbert-base-uncased-distilled-squad", 4},
    {"distilbert-base-multilingual-cased", 5},
    {"albert-base-v1", 10},
    {"albert-large-v1", 17},
    {"albert-xlarge-v1", 16},
    {"albert-xxlarge-v1", 8},
    {"albert-base-v2", 9},
    {"albert-large-v2", 14},
    {"albert-xlarge-v2", 13},
    {"albert-xxlarge-v2", 8},
    {"xlm-roberta-base", 9},
    {"xlm-roberta-large", 17},
    {"google/bert_uncased_L-2_H-128_A-2", 1},
    {"google/bert_uncased_L-2_H-256_A-4", 1},
    {"google/bert_uncased_L-2_H-512_A-8", 1},
    {"google/bert_uncased_L-2_H-768_A-12", 2},
    {"google/bert_uncased_L-4_H-128_A-2", 3},
    {"google/bert_uncased_L-4_H-256_A-4", 3},
    {"google/bert_uncased_L-4_H-512_A-8", 3},
    {"google/bert_uncased_L-4_H-768_A-12", 3},
    {"google/bert_uncased_L-6_H-128_A-2", 5},
    {"google/bert_uncased_L-6_H-256_A-4", 5},
    {"google/bert_uncased_L-6_H-512_A-8", 5},
    {"google/bert_uncased_L-6_H-768_A-12", 5},
    {"google/bert_uncased_L-8_H-128_A-2", 7},
    {"google/bert_uncased_L-8_H-256_A-4", 7},
    {"google/bert_uncased_L-8_H-512_A-8", 6},
    {"google/bert_uncased_L-8_H-768_A-12", 7},
    {"google/bert_uncased_L-10_H-128_A-2", 8},
    {"google/bert_uncased_L-10_H-256_A-4", 8},
    {"google/bert_uncased_L-10_H-512_A-8", 9},
    {"google/bert_uncased_L-10_H-768_A-12", 8},
    {"google/bert_uncased_L-12_H-128_A-2", 10},
    {"google/bert_uncased_L-12_H-256_A-4", 11},
    {"google/bert_uncased_L-12_H-512_A-8", 10},
    {"google/bert_uncased_L-12_H-768_A-12", 9},
    {"SpanBERT/spanbert-base-cased", 8},
    {"SpanBERT/spanbert-large-cased", 17},
    {"ProsusAI/finbert", 10},
    {"princeton-nlp/unsup-simcse-bert-base-uncased", 10},
    {"princeton-nlp/unsup-simcse-bert-large-uncased", 18},
    {"princeton-nlp/unsup-simcse-roberta-base", 8},
    {"princeton-nlp/unsup-simcse-roberta-large", 13},
    {"princeton-nlp/sup-simcse-bert-base-uncased", 10},
    {"princeton-nlp/sup-simcse-bert-large-uncased", 18},
    {"princeton-nlp/sup-simcse-roberta-base", 10},
    {"princeton-nlp/sup-simcse-roberta-large", 16},
    {"dbmdz/bert-base-turkish-cased", 10},
    {"dbmdz/distilbert-base-turkish-cased", 4},
};

int tg_bert_score_layers(const char *model) {
    for (size_t i = 0; i < TG_COUNT_OF(by_model); i++)
        if (!strcmp(by_model[i].model, model)) return by_model[i].layers;
    return 0;
}
