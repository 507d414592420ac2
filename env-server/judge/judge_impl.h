/* What the files of the judges share. Private to judge*.c. */
#ifndef TG_ENV_JUDGE_IMPL_H
#define TG_ENV_JUDGE_IMPL_H

#include "common/nn/classifier.h"
#include "env-server/judge/judge.h"

#include <pthread.h>

/* Rows to be judged, and where the answer goes. */
typedef struct tg_question {
    const tg_encodings *rows;
    const int32_t *ids; /* TG_JUDGE_ANSWER: the n_ids tokens whose logits are wanted */
    size_t n_ids;
    float *out;
    tg_status status;
    tg_error error;
    bool answered;
    struct tg_question *next;
} tg_question;

struct tg_judges {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    bool busy;
    tg_backend *be;
    tg_judge *first;
};

struct tg_judge {
    tg_judges *home;
    bool own_home;
    tg_judge *next;
    int users;
    tg_judge_kind kind;
    int n_layers;
    char *folder;
    tg_arch arch;
    tg_tokenizer *tokenizer;
    int64_t max_length;
    tg_question *waiting; /* newest first */
    /* whose home is busy; NULL: not loaded yet */
    tg_classifier *classifier;
    tg_model *model;
    tg_pass *pass;
};

/* Weights and buffers, where they are not there yet. The home is the caller's, as below. */
tg_status tg_judge_load(tg_judge *j, tg_error *err) TG_MUST_CHECK;
/* Logits or states of all rows; q says which tokens of an answer are wanted. */
tg_status tg_judge_run(tg_judge *j, const tg_encodings *rows, const tg_question *q, float *out,
                       tg_error *err) TG_MUST_CHECK;

#endif
