/* Training a unigram tokenizer from text (Kudo 2018, as SentencePiece and Hugging Face do it).
 *
 *     tg_unigram_trainer *u;
 *     tg_unigram_trainer_create(&u, err);
 *     tg_unigram_trainer_add(u, text, len, err);                  // as often as wanted
 *     tg_unigram_train(u, &options, &tokenizer, err);             // then tg_tokenizer_save
 *
 * Text is normalised by NFKC and cut at white space; a word begins with U+2581. Pieces that occur often are the seeds;
 * their probabilities are found by expectation maximisation, and those whose loss costs least are dropped until the
 * vocabulary has its size. Same text in any order of calls, same tokenizer. */
#ifndef TG_TEXT_UNIGRAM_TRAIN_H
#define TG_TEXT_UNIGRAM_TRAIN_H

#include "common/text/tokenizer.h"

typedef struct tg_unigram_trainer tg_unigram_trainer;

typedef struct tg_unigram_train_options {
    int64_t
        vocab_size; /* in all, special tokens counted; fewer come out when the text has no more pieces */
    int64_t max_length; /* model_max_length; 0: none */
    int64_t max_piece;  /* characters of a piece; 0: 16 */
    int64_t max_seeds;  /* pieces to begin with; 0: 1000000 */
} tg_unigram_train_options;

tg_status tg_unigram_trainer_create(tg_unigram_trainer **out, tg_error *err) TG_MUST_CHECK;
void tg_unigram_trainer_destroy(tg_unigram_trainer **u);
/* Counts the words of a text. */
tg_status tg_unigram_trainer_add(tg_unigram_trainer *u, const char *text, size_t len,
                                 tg_error *err) TG_MUST_CHECK;
/* Ids: <pad>, </s>, <unk>, then pieces by probability. A text is followed by </s>. The tokenizer is owned by the
 * caller; the trainer's counts stay as they are. TG_CONFIG: a vocabulary too small for the characters. */
tg_status tg_unigram_train(const tg_unigram_trainer *u, const tg_unigram_train_options *options,
                           tg_tokenizer **out, tg_error *err) TG_MUST_CHECK;

#endif
