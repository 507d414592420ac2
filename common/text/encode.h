/* Many texts to rows of ids, for a model: pairs, truncation, padding, masks, offsets; as Hugging Face does it.
 *
 *     tg_encode_options o = tg_encode_defaults(t);
 *     o.truncate = true, o.max_length = 128, o.pad = TG_PAD_LONGEST;
 *     tg_encodings e = {0};
 *     tg_tokenizer_encode_batch(t, texts, n, &o, team, &e, err);       // e.ids[e.start[row] .. e.start[row + 1])
 *     tg_encodings_fini(&e);
 *
 * Rows come in the order of the texts, whatever the number of threads. */
#ifndef TG_TEXT_ENCODE_H
#define TG_TEXT_ENCODE_H

#include "common/base/threads.h"
#include "common/text/tokenizer.h"

/* Which of two texts is cut. */
typedef enum tg_truncation {
    TG_TRUNCATE_LONGEST_FIRST, /* the longer one, then both alike */
    TG_TRUNCATE_ONLY_FIRST,
    TG_TRUNCATE_ONLY_SECOND
} tg_truncation;
typedef enum tg_padding { TG_PAD_NONE, TG_PAD_LONGEST, TG_PAD_LENGTH } tg_padding;

typedef struct tg_encode_options {
    bool special; /* add what the post-processor adds */
    bool offsets; /* fill spans */
    bool truncate;
    tg_truncation strategy;
    bool truncate_left;
    int64_t
        max_length; /* of a row, special tokens counted. Less than these are: rows are not cut, as in Hugging Face */
    int64_t
        stride; /* tokens that a cut-off part shares with the one before; below what is kept of a text */
    bool overflow; /* what was cut off follows as rows of its own */
    tg_padding pad;
    bool pad_left;
    int64_t pad_length;   /* TG_PAD_LENGTH */
    int64_t pad_multiple; /* rows become a multiple of it long; 0: any length */
    int32_t pad_id;
    uint8_t pad_type;
} tg_encode_options;

/* One row: one text, or two. pair NULL: there is no second. */
typedef struct tg_text {
    const char *s;
    size_t len;
    const char *pair;
    size_t pair_len;
} tg_text;

typedef struct tg_encodings_work tg_encodings_work;

/* Zero-initialise, reuse (memory is kept), then tg_encodings_fini. */
typedef struct tg_encodings {
    size_t n;       /* rows: one for each text, more with overflow */
    size_t *start;  /* n + 1 places in the arrays below */
    uint32_t *text; /* row -> its text */
    int32_t *ids;
    uint8_t *attention; /* 0: padding */
    uint8_t *types;     /* token type ids */
    uint8_t *special;   /* 1: added by the post-processor, or padding */
    tg_span *spans;     /* in code points of the token's own text; only with options.offsets */
    size_t rows_cap, tokens_cap, spans_cap;
    tg_encodings_work *work;
} tg_encodings;

/* special, no truncation, no padding; sides, pad_id and pad_type as the tokenizer's files say. */
tg_encode_options tg_encode_defaults(const tg_tokenizer *t);

/* team NULL: on the calling thread. On failure out holds no rows. TG_CONFIG: options that do not go together; TG_DATA:
 * a text that cannot be cut as asked, named by its place. */
tg_status tg_tokenizer_encode_batch(const tg_tokenizer *t, const tg_text *texts, size_t n,
                                    const tg_encode_options *options, tg_team *team,
                                    tg_encodings *out, tg_error *err) TG_MUST_CHECK;
void tg_encodings_fini(tg_encodings *e);

/* Texts of many rows of ids: row i is ids[start[i] .. start[i + 1]). Appends all texts to out; end[i] gets the end of
 * text i there. flags as for tg_tokenizer_decode. */
tg_status tg_tokenizer_decode_batch(const tg_tokenizer *t, const int32_t *ids, const size_t *start,
                                    size_t n, unsigned flags, tg_team *team, tg_buf *out,
                                    size_t *end, tg_error *err) TG_MUST_CHECK;

#endif
