/* Text to token ids and back, as Hugging Face does it.
 *
 *     tg_tokenizer *t;
 *     tg_tokenizer_open(&t, "models/gpt2", err);        // a model folder
 *     tg_tokenizer_encode(t, text, len, TG_ENCODE_SPECIAL, &ids, err);
 *     tg_tokenizer_decode(t, ids.data, ids.n, TG_DECODE_SKIP_SPECIAL, &text, err);
 *     tg_tokenizer_destroy(&t);
 *
 * A tokenizer is read-only after opening: any number of threads may use it, each with its own
 * output. */
#ifndef TG_TEXT_TOKENIZER_H
#define TG_TEXT_TOKENIZER_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_tokenizer tg_tokenizer;

/* A growable id array, reused between calls; zero-initialise, then tg_ids_fini. */
typedef struct tg_ids {
    int32_t *data;
    size_t n, cap;
} tg_ids;
bool tg_ids_push(tg_ids *ids, int32_t id); /* false: out of memory */
bool tg_ids_reserve(tg_ids *ids, size_t more);
void tg_ids_fini(tg_ids *ids);

/* Where a token lies in the text: code points [start, end). Added special tokens are [0, 0). */
typedef struct tg_span {
    uint32_t start, end;
} tg_span;
typedef struct tg_spans {
    tg_span *data;
    size_t n, cap;
} tg_spans;
bool tg_spans_push(tg_spans *spans, tg_span span); /* false: out of memory */
bool tg_spans_reserve(tg_spans *spans, size_t more);
void tg_spans_fini(tg_spans *spans);

enum { TG_ENCODE_SPECIAL = 1 /* add what the post-processor adds (T5's </s>, BERT's [CLS] …) */ };
enum {
    TG_DECODE_SKIP_SPECIAL = 1,
    TG_DECODE_CLEAN_UP = 2 /* clean_up_tokenization_spaces: " ," -> "," … */
};

/* folder: a Hugging Face folder, or the path of a tokenizer.json or a SentencePiece .model. */
tg_status tg_tokenizer_open(tg_tokenizer **out, const char *folder, tg_error *err) TG_MUST_CHECK;
/* Whether a folder has files of a tokenizer, which may still be broken. */
bool tg_tokenizer_is_there(const char *folder);
/* The same from memory: the text of a tokenizer.json and, unless NULL, of a tokenizer_config.json (NUL-terminated). */
tg_status tg_tokenizer_parse(tg_tokenizer **out, const char *json, size_t len, const char *config,
                             tg_error *err) TG_MUST_CHECK;
void tg_tokenizer_destroy(tg_tokenizer **t);
/* What encodes the answers of an encoder-decoder model: with Marian a tokenizer of the same ids for the other language, else t itself. Of
 * t; decoding is the same for both. */
const tg_tokenizer *tg_tokenizer_target(const tg_tokenizer *t);

/* Appends to ids. Special tokens inside the text are recognised. Any bytes are accepted as text:
 * what is not UTF-8 is read as U+FFFD, one for each maximal ill-formed part, as Python's
 * bytes.decode('utf-8', 'replace') does before Hugging Face sees it. On failure ids is as before.
 */
tg_status tg_tokenizer_encode(const tg_tokenizer *t, const char *text, size_t len, unsigned flags,
                              tg_ids *ids, tg_error *err) TG_MUST_CHECK;
/* The same, and where each token lies in the text (spans gets one for each id, and has as many
 * entries as ids on entry). */
tg_status tg_tokenizer_encode_spans(const tg_tokenizer *t, const char *text, size_t len,
                                    unsigned flags, tg_ids *ids, tg_spans *spans,
                                    tg_error *err) TG_MUST_CHECK;
/* Appends UTF-8; broken sequences become U+FFFD as in Hugging Face. An id that names no token
 * decodes to nothing, as there (models with a padded vocabulary can produce such ids); a negative
 * one is TG_DATA. */
tg_status tg_tokenizer_decode(const tg_tokenizer *t, const int32_t *ids, size_t n, unsigned flags,
                              tg_buf *out, tg_error *err) TG_MUST_CHECK;

/* Appends what a token adds inside a text: bytes that need not be UTF-8 by themselves. Nothing for an id without token. */
void tg_tokenizer_piece(const tg_tokenizer *t, int32_t id, tg_buf *out);

int32_t tg_tokenizer_vocab_size(const tg_tokenizer *t); /* base vocabulary, without added tokens */
int32_t tg_tokenizer_size(const tg_tokenizer *t); /* with added tokens: one past the largest id */
/* -1 when the tokenizer has none. pad falls back to eos when pad_token_as_eos_token was set. */
int32_t tg_tokenizer_bos(const tg_tokenizer *t);
int32_t tg_tokenizer_eos(const tg_tokenizer *t);
int32_t tg_tokenizer_pad(const tg_tokenizer *t);
int32_t tg_tokenizer_unk(const tg_tokenizer *t);
bool tg_tokenizer_is_special(const tg_tokenizer *t, int32_t id);
void tg_tokenizer_set_pad_as_eos(
    tg_tokenizer *t); /* RL4LMs's pad_token_as_eos_token: only when there is no pad */
int64_t tg_tokenizer_max_length(const tg_tokenizer *t); /* model_max_length; INT64_MAX when unset */
/* Token text in the tokenizer's own alphabet ("Ġthe"); borrowed, NULL when out of range. */
const char *tg_tokenizer_token(const tg_tokenizer *t, int32_t id);
int32_t tg_tokenizer_id(const tg_tokenizer *t, const char *token); /* -1: unknown */
uint64_t tg_tokenizer_digest(const tg_tokenizer *t); /* of everything that decides an id */

/* Copies the tokenizer's files into a model folder. */
tg_status tg_tokenizer_save(const tg_tokenizer *t, const char *folder, tg_error *err) TG_MUST_CHECK;

#endif
