/* The normaliser of a tokenizer: rewrites text before it is cut.
 *
 * Built: none, NFC, NFD, NFKC, NFKD, BertNormalizer, Lowercase, StripAccents, Strip, Replace,
 * Prepend, Nmt, Precompiled, SentencePiece (our own, see spm.h) and Sequence of these. Others are refused by name. */
#ifndef TG_TEXT_NORMALIZER_H
#define TG_TEXT_NORMALIZER_H

#include "common/text/charsmap.h"
#include "common/text/nfc.h"
#include "common/text/part.h"
#include "common/text/regex.h"
#include "common/text/scratch.h"
#include "common/text/spm_norm.h"

typedef enum tg_norm_kind {
    TG_NORM_FORM,    /* one of the four Unicode forms */
    TG_NORM_CLEAN,   /* BERT: control characters dropped, white space made spaces */
    TG_NORM_CHINESE, /* BERT: spaces around ideographs */
    TG_NORM_ACCENTS, /* BERT: nonspacing marks dropped */
    TG_NORM_MARKS,   /* StripAccents: combining marks dropped */
    TG_NORM_LOWER,
    TG_NORM_STRIP,
    TG_NORM_REPLACE,
    TG_NORM_PREPEND,
    TG_NORM_NMT,
    TG_NORM_PRECOMPILED,
    TG_NORM_SENTENCEPIECE
} tg_norm_kind;

typedef struct tg_norm_step {
    tg_norm_kind kind;
    tg_nf form;
    bool left, right;      /* Strip */
    tg_regex *regex;       /* Replace */
    char *text;            /* Replace, Prepend */
    tg_charsmap *charsmap; /* Precompiled; NULL: an empty map */
    tg_spm_norm *spm;      /* SentencePiece */
} tg_norm_step;

enum { TG_NORM_MAX = 24 };

typedef struct tg_normalizer {
    tg_norm_step step[TG_NORM_MAX];
    size_t n;
    char *json; /* the part as it was read; "null" when there is none */
} tg_normalizer;

tg_status tg_normalizer_read(tg_normalizer *n, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_normalizer_fini(tg_normalizer *n);

/* *out is in itself, when nothing changes, or a view of one of s->normal. */
tg_status tg_normalizer_run(const tg_normalizer *n, tg_scratch *s, tg_view in, tg_view *out,
                            tg_error *err) TG_MUST_CHECK;

/* Appends the normalised text; for loading. */
tg_status tg_normalizer_text(const tg_normalizer *n, const char *s, size_t len, tg_buf *out,
                             tg_error *err) TG_MUST_CHECK;

#endif
