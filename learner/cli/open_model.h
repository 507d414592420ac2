/* A model opened for a command: backend, weights and, if the folder has one, tokenizer. */
#ifndef TG_LEARNER_CLI_OPEN_MODEL_H
#define TG_LEARNER_CLI_OPEN_MODEL_H

#include "common/base/status.h"
#include "common/nn/model.h"
#include "common/text/tokenizer.h"

#include <stdint.h>

typedef struct tg_cli_model {
    tg_backend *be;
    tg_model *model;
    tg_tokenizer *tokenizer; /* NULL: the folder has none */
    bool warned;             /* of texts longer than it was trained with */
} tg_cli_model;

/* name: as in a config's model_name. A tokenizer that is there but broken is an error. */
tg_status tg_cli_model_open(tg_cli_model *m, const char *name, const char *backend, int threads,
                            tg_error *err) TG_MUST_CHECK;
/* TG_USAGE when the value of --threads is no number of them. */
tg_status tg_cli_threads(int64_t threads, tg_error *err) TG_MUST_CHECK;
/* Tokens of prompts: a seq2seq model's source may be in another vocabulary than the answer. */
int tg_cli_model_vocab(const tg_cli_model *m);
/* Warns once when texts of n tokens turn by angles that the model has not seen in training. */
void tg_cli_model_check_length(tg_cli_model *m, const char *command, int64_t n);
void tg_cli_model_close(tg_cli_model *m);

#endif
