/* The model of a tokenizer: cuts one piece of text into tokens of its vocabulary. */
#ifndef TG_TEXT_TEXT_MODEL_H
#define TG_TEXT_TEXT_MODEL_H

#include "common/text/part.h"
#include "common/text/scratch.h"
#include "common/text/vocab.h"

typedef struct tg_text_model tg_text_model;

typedef struct tg_text_model_ops {
    const char *name; /* "BPE" */
    /* Appends the tokens of one piece. Read-only: several threads may encode at once, each with its
     * scratch. */
    tg_status (*encode)(const tg_text_model *m, tg_scratch *s, tg_view piece, tg_sink *out,
                        tg_error *err);
    void (*write_json)(const tg_text_model *m,
                       tg_buf *out); /* the "model" part of a tokenizer.json */
    void (*destroy)(tg_text_model *m);
} tg_text_model_ops;

struct tg_text_model {
    const tg_text_model_ops *ops;
    tg_vocab vocab; /* read-only */
    int32_t known; /* Marian: pieces from this number on cut texts, but are no tokens; 0: all are */
};

/* Reads the "model" part. Pieces arrive as raw bytes when byte_level (the pre-tokenizer is
 * ByteLevel). */
tg_status tg_text_model_read(tg_text_model **out, const json_t *part, bool byte_level,
                             tg_error *err) TG_MUST_CHECK;
void tg_text_model_destroy(tg_text_model **m);

#endif
