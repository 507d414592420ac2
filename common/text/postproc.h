/* The post-processor: trims the offsets of tokens and puts special tokens around the sequence.
 *
 * Built: ByteLevel, RobertaProcessing, BertProcessing, TemplateProcessing (for one sequence) and
 * Sequence of these. */
#ifndef TG_TEXT_POSTPROC_H
#define TG_TEXT_POSTPROC_H

#include "common/text/part.h"
#include "common/text/view.h"

/* The text of a token (model or added), for trimming; NULL: none. */
typedef const char *tg_token_text_fn(const void *arg, int32_t id);

/* White space characters at both ends of a text of len bytes, in either alphabet ("Ġ" stands for a space). A text of
 * white space alone counts them twice. */
void tg_postproc_blanks(const char *text, size_t len, uint32_t *leading, uint32_t *trailing);

enum { TG_POSTPROC_MAX = 8 };

typedef struct tg_postproc_part {
    bool trim, prefix_space; /* ByteLevel, RobertaProcessing */
    tg_ids before, after;    /* special tokens around the sequence */
} tg_postproc_part;

typedef struct tg_postproc {
    tg_postproc_part part[TG_POSTPROC_MAX];
    size_t n;
    char *json; /* as it was read; "null" when there is none */
} tg_postproc;

tg_status tg_postproc_read(tg_postproc *p, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_postproc_fini(tg_postproc *p);

/* Works on the tokens from place `start` of out on. special: also add the special tokens. */
tg_status tg_postproc_run(const tg_postproc *p, bool special, tg_sink *out, size_t start,
                          tg_token_text_fn *text, const void *arg, tg_error *err) TG_MUST_CHECK;

#endif
