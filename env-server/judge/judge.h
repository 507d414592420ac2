/* Models that judge texts: classifiers, encoders for BERTScore, a seq2seq model that says good or bad.
 *
 *     tg_judge *j;
 *     tg_judge_open(&j, ctx, (tg_judge_spec){.owner = "learned_reward", .name = "org/model"}, err);   // finds and checks, loads nothing
 *     tg_judge_encode(j, texts, n, true, &rows, err);
 *     tg_judge_labels(j, &rows, logits, err);           // the first call loads the weights
 *     tg_judge_close(&j);
 *
 * A worker has each model once (tg_judges): whoever asks for the same one shares it. Texts are packed, so that a text's result does not
 * depend on those beside it. Any thread may ask; one pass runs at a time, on the judges' own threads, and takes along what waits
 * for the same judge. */
#ifndef TG_ENV_JUDGE_H
#define TG_ENV_JUDGE_H

#include "common/base/status.h"
#include "common/nn/arch.h"
#include "common/text/encode.h"
#include "env-server/entry.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tg_judges tg_judges;
typedef struct tg_judge tg_judge;

/* n_threads of all models together; 0: one per CPU. */
tg_status tg_judges_create(tg_judges **out, int n_threads, tg_error *err) TG_MUST_CHECK;
void tg_judges_destroy(tg_judges **judges); /* after all that were opened have been closed */

typedef enum tg_judge_kind {
    TG_JUDGE_LABELS, /* a model with labels */
    TG_JUDGE_STATES, /* an encoder */
    TG_JUDGE_ANSWER, /* a seq2seq model */
    TG_JUDGE_TEXT,   /* a causal model */
} tg_judge_kind;

typedef struct tg_judge_spec {
    const char *owner; /* for messages */
    const char *name;  /* folder, or a name to look up */
    tg_judge_kind kind;
    int n_layers;  /* TG_JUDGE_STATES: only the first so many; 0: all */
    bool or_fewer; /* a model with fewer layers will do */
} tg_judge_spec;

/* Finds the folder, reads config and tokenizer, checks that the weights are there. ctx->judges NULL: a home of its own, one thread. */
tg_status tg_judge_open(tg_judge **out, const tg_open_context *ctx, tg_judge_spec spec,
                        tg_error *err) TG_MUST_CHECK;
void tg_judge_close(tg_judge **judge);

const tg_arch *tg_judge_arch(const tg_judge *j);
const tg_tokenizer *tg_judge_tokenizer(const tg_judge *j);
const char *tg_judge_folder(const tg_judge *j);

/* Special tokens included, cut to what tokenizer and model take, at the left side or where the tokenizer's files say. */
tg_status tg_judge_encode(const tg_judge *j, const tg_text *texts, size_t n, bool cut_left,
                          tg_encodings *rows, tg_error *err) TG_MUST_CHECK;

/* TG_JUDGE_LABELS: logits (rows->n, n_labels). */
tg_status tg_judge_labels(tg_judge *j, const tg_encodings *rows, float *logits,
                          tg_error *err) TG_MUST_CHECK;
/* TG_JUDGE_STATES: states (rows->start[n], width), of every token. */
tg_status tg_judge_states(tg_judge *j, const tg_encodings *rows, float *states,
                          tg_error *err) TG_MUST_CHECK;
/* TG_JUDGE_ANSWER: logits (rows->n, n_ids) of those tokens as the first one of the answer to each source. All who ask a judge ask for the
 * same tokens. */
tg_status tg_judge_answers(tg_judge *j, const tg_encodings *rows, const int32_t *ids, size_t n_ids,
                           float *logits, tg_error *err) TG_MUST_CHECK;
/* TG_JUDGE_TEXT: perplexity of the tokens (common/nn/perplexity.h). */
tg_status tg_judge_perplexity(tg_judge *j, const int32_t *tokens, size_t n, int stride, double *out,
                              tg_error *err) TG_MUST_CHECK;

#endif
