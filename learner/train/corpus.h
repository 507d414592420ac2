/* Texts of a supervised run as token sequences, one for each reference of each sample: prompt and reference in one, or for a seq2seq model the
 * start token and the reference, with the prompt as its source. */
#ifndef TG_TRAIN_CORPUS_H
#define TG_TRAIN_CORPUS_H

#include "common/base/status.h"
#include "common/nn/pass.h"
#include "common/text/tokenizer.h"
#include "learner/train/evaluate.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_corpus {
    int32_t *tokens; /* all texts, one behind the other */
    int64_t *start;  /* (n + 1) */
    int64_t n;
    int64_t n_truncated, n_dropped; /* cut to max_length; shorter than two tokens */
    int32_t *src;                   /* seq2seq: all sources; NULL otherwise */
    int64_t *src_start;             /* (n + 1) */
} tg_corpus;

typedef struct tg_corpus_opts {
    int32_t start_id;   /* seq2seq: what the decoder reads first; -1: causal */
    bool wraps;         /* instead it reads the reference's last token first: mBART's language */
    int max_length;     /* of a text, in tokens; seq2seq: of the prompt and of the reference */
    bool truncate_left; /* which end of a long text is cut */
    bool add_eos;       /* append eos, so that the model learns to stop */
} tg_corpus_opts;

/* TG_DATA: no text remains. */
tg_status tg_corpus_build(tg_corpus *c, const tg_split_samples *samples,
                          const tg_tokenizer *tokenizer, const tg_corpus_opts *opts,
                          tg_error *err) TG_MUST_CHECK;
void tg_corpus_fini(tg_corpus *c);

/* Packs some texts into one pass: text i contributes its tokens but the last as rows, and every token but the first as an action.
 * Labels equal to `ignored` (-1: none) are left out. Arrays have room for caps.tokens each (offsets one more), and caps.src. */
typedef struct tg_packer {
    tg_pass_caps caps;
    int32_t *tokens, *offsets, *act_row, *act_token, *src_tokens, *src_offsets;
    tg_batch batch;
} tg_packer;
/* tokens of caps count for all but src. */
tg_status tg_packer_init(tg_packer *p, tg_pass_caps caps, tg_error *err) TG_MUST_CHECK;
void tg_packer_fini(tg_packer *p);
void tg_packer_reset(tg_packer *p);
bool tg_packer_add(tg_packer *p, const tg_corpus *c, int64_t text,
                   int32_t ignored); /* false: full */

#endif
