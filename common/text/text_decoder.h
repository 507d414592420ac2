/* The decoder: tokens back to text.
 *
 * Built: ByteLevel, WordPiece, BPEDecoder, Metaspace, none (tokens joined by spaces), and a Sequence of Replace
 * and Metaspace steps on single tokens, then ByteFallback, then Fuse, then Replace and Strip on the
 * whole text. Others are refused by name. */
#ifndef TG_TEXT_TEXT_DECODER_H
#define TG_TEXT_TEXT_DECODER_H

#include "common/text/part.h"

#include <stdint.h>

typedef enum tg_decoder_kind {
    TG_DECODER_BYTE_LEVEL,
    TG_DECODER_WORDPIECE,
    TG_DECODER_METASPACE,
    TG_DECODER_BPE,
    TG_DECODER_REPLACE,
    TG_DECODER_STRIP,
    TG_DECODER_BYTE_FALLBACK,
    TG_DECODER_FUSE
} tg_decoder_kind;

typedef struct tg_decoder_step {
    tg_decoder_kind kind;
    char *from,
        *to; /* Replace; WordPiece: from is the prefix; BPEDecoder: the suffix; Metaspace: the mark;
                        Strip: the character */
    bool option;          /* WordPiece: cleanup; Metaspace: keeps marks of the first token */
    uint32_t start, stop; /* Strip */
} tg_decoder_step;

enum { TG_DECODER_MAX = 12 };

typedef struct tg_text_decoder {
    tg_decoder_step step[TG_DECODER_MAX];
    size_t n;
    size_t fused;               /* steps from here on see the whole text */
    bool byte_fallback, spaces; /* spaces: there is no decoder, tokens are joined by spaces */
    char *json;                 /* as it was read; "null" when there is none */
    /* What every token decodes to: at the start of a text, inside, and, if last_differs, at the end. */
    struct tg_decoder_table {
        tg_buf bytes;
        uint32_t *offsets; /* id -> place in bytes; n_tokens + 1 of them */
    } first, rest, last;
    bool last_differs; /* BPEDecoder: its suffix is a space, but not at the end */
    int16_t *byte;     /* id -> the byte it stands for (ByteFallback), or -1 */
    int32_t n_tokens;
} tg_text_decoder;

tg_status tg_text_decoder_read(tg_text_decoder *d, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_text_decoder_fini(tg_text_decoder *d);

/* After reading: token text of ids [0, n), in order; text(arg, id) may be NULL for a hole. */
tg_status tg_text_decoder_build(tg_text_decoder *d, int32_t n,
                                const char *(*text)(const void *arg, int32_t id), const void *arg,
                                tg_error *err) TG_MUST_CHECK;

/* One text: put every token, then end it. */
typedef struct tg_decoding {
    tg_buf *out;  /* gets broken UTF-8 from byte-level tokens until all are there */
    size_t start; /* where the text begins in out */
    size_t run;   /* bytes at the end of out that came from byte tokens */
    bool any;     /* a token was put */
    size_t last;  /* where the last token begins in out */
    int32_t last_id;
} tg_decoding;
void tg_text_decoder_put(const tg_text_decoder *d, tg_decoding *t, int32_t id);
void tg_text_decoder_end(const tg_text_decoder *d, tg_decoding *t);

/* Replaced one after the other: " ." -> "." … */
enum { TG_CLEAN_UP_RULES = 10 };
extern const char *const tg_clean_up_rules[TG_CLEAN_UP_RULES][2];

/* clean_up_tokenization_spaces of transformers 4.18, in place on out from `start` on: " ." -> "."
 * and so on. */
void tg_text_decoder_clean_up(tg_buf *out, size_t start);

#endif
