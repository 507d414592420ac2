/* A model as a judge of texts: logits of labels, or one vector for a text. An encoder, or a causal model with labels.
 *
 *     tg_classifier *c;
 *     tg_classifier_open(&c, be, "models/sentiment", 4096, err);       // BERT, RoBERTa, DistilBERT, ALBERT, MiniLM …
 *     tg_classifier_score(c, &texts, logits, err);                     // (n_texts, c->n_labels)
 *     tg_classifier_embed(c, &texts, TG_POOL_MEAN, vectors, err);      // (n_texts, c->width)
 *     tg_classifier_destroy(&c);
 *
 * Texts come as tokens with the special tokens that the model was trained with ([CLS] … [SEP]) and without padding; they are packed, so that
 * a text's result does not depend on those beside it. One thread at a time, as the backend. */
#ifndef TG_NN_CLASSIFIER_H
#define TG_NN_CLASSIFIER_H

#include "common/nn/model.h"
#include "common/nn/pass.h"

/* What the logits of a text mean. */
typedef enum tg_problem {
    TG_PROBLEM_SINGLE_LABEL, /* softmax: one label is right */
    TG_PROBLEM_MULTI_LABEL,  /* logistic function of each */
    TG_PROBLEM_REGRESSION,   /* numbers as they are */
} tg_problem;

typedef enum tg_pooling { TG_POOL_FIRST, TG_POOL_MEAN, TG_POOL_MAX } tg_pooling;

/* Packed as tg_batch: borrowed. */
typedef struct tg_texts {
    int n;
    const int32_t *tokens, *offsets; /* offsets (n + 1) */
    const int32_t *types;            /* NULL: all 0 */
} tg_texts;

typedef struct tg_classifier {
    /* read-only */
    tg_model *model;
    int n_labels;  /* 0: no head, only embed */
    char **labels; /* (n_labels) names by id2label, "LABEL_0" … where it has none */
    tg_problem problem;
    int width;
    int max_length; /* tokens of a text */
    /* private */
    tg_pass *pass;
    tg_pass_caps caps;
    float *rows; /* host (rows_cap, width) */
    int32_t *row_ids;
} tg_classifier;

/* A folder of an encoder family, or of a causal one that config.json calls …ForSequenceClassification. max_tokens: of a pass, which
 * always has room for a text of full length (0: for no more). */
tg_status tg_classifier_open(tg_classifier **out, tg_backend *be, const char *folder,
                             int max_tokens, tg_error *err) TG_MUST_CHECK;
/* The same with only the first n_layers of an encoder's layers, for states and vectors. */
tg_status tg_classifier_open_first(tg_classifier **out, tg_backend *be, const char *folder,
                                   int n_layers, int max_tokens, tg_error *err) TG_MUST_CHECK;
void tg_classifier_destroy(tg_classifier **c);

/* logits (n, n_labels). TG_DATA: no head (naming what config.json has instead), an empty or too long text, a token outside the vocabulary. */
tg_status tg_classifier_score(tg_classifier *c, const tg_texts *texts, float *logits,
                              tg_error *err) TG_MUST_CHECK;
/* The same as probabilities of labels, or for regression the numbers. */
tg_status tg_classifier_probabilities(tg_classifier *c, const tg_texts *texts, float *out,
                                      tg_error *err) TG_MUST_CHECK;
/* Logits (n, n_labels) become probabilities in place; of a regression they stay as they are. */
void tg_classifier_normalize(const tg_classifier *c, float *logits, int n);
/* vectors (n, width): the last layer's states of a text, pooled. */
tg_status tg_classifier_embed(tg_classifier *c, const tg_texts *texts, tg_pooling pooling,
                              float *vectors, tg_error *err) TG_MUST_CHECK;

/* states (offsets[n], width): the last layer's, of every token. */
tg_status tg_classifier_states(tg_classifier *c, const tg_texts *texts, float *states,
                               tg_error *err) TG_MUST_CHECK;

#endif
