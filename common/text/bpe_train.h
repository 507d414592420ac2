/* Training a byte-level BPE tokenizer from text.
 *
 *     tg_bpe_trainer *b;
 *     tg_bpe_trainer_create(&b, err);
 *     tg_bpe_trainer_add(b, text, len, err);                    // as often as wanted
 *     tg_bpe_train(b, &options, &tokenizer, err);               // then tg_tokenizer_save
 *
 * The most frequent pair of neighbours is merged again and again; of equally frequent pairs the one with the smaller ids.
 * Same text in any order of calls, same tokenizer. Ids: special tokens, the 256 bytes, merges. The order of ties and of
 * ids is that of Hugging Face's BpeTrainer. */
#ifndef TG_TEXT_BPE_TRAIN_H
#define TG_TEXT_BPE_TRAIN_H

#include "common/text/tokenizer.h"

typedef struct tg_bpe_trainer tg_bpe_trainer;

typedef struct tg_bpe_train_options {
    int64_t
        vocab_size; /* in all; at least specials + 256. Fewer come out when the text has no more pairs */
    int64_t min_frequency; /* a pair that occurs less often is not merged */
    const char *const
        *special; /* the first is beginning, end of text and unknown; may be 0 of them */
    size_t n_special;
    int64_t max_length; /* model_max_length; 0: none */
} tg_bpe_train_options;

tg_status tg_bpe_trainer_create(tg_bpe_trainer **out, tg_error *err) TG_MUST_CHECK;
void tg_bpe_trainer_destroy(tg_bpe_trainer **b);

/* Counts the words of a text, line by line. */
tg_status tg_bpe_trainer_add(tg_bpe_trainer *b, const char *text, size_t len,
                             tg_error *err) TG_MUST_CHECK;

/* The tokenizer is owned by the caller. The trainer's counts stay as they are. */
tg_status tg_bpe_train(const tg_bpe_trainer *b, const tg_bpe_train_options *options,
                       tg_tokenizer **out, tg_error *err) TG_MUST_CHECK;

#endif
