/* The post-processor: lays out one row from the tokens of one or two texts and special tokens, and trims offsets.
 *
 * Built: ByteLevel, RobertaProcessing, BertProcessing, TemplateProcessing and Sequence of these. What the parts do
 * together is worked out once, at loading, into four plans: for one text and for two, with special tokens and without. */
#ifndef TG_TEXT_POSTPROC_H
#define TG_TEXT_POSTPROC_H

#include "common/text/part.h"
#include "common/text/view.h"

enum { TG_POSTPROC_TRIMS = 4 };

/* White space at both ends of a token is taken out of its offsets. */
typedef struct tg_post_trim {
    bool prefix_space; /* one space at the start may be ours: it stays */
    bool first;        /* the sequence's first token stands at the start of what the part saw */
} tg_post_trim;

/* One place of a row. */
typedef struct tg_post_item {
    int sequence; /* 0: the first text, 1: the second, -1: a special token */
    int32_t id;   /* of the special token */
    uint8_t type;
    bool rest_type; /* also what was cut off gets `type`; else it keeps the number of its text */
    bool special;   /* as special_tokens_mask says */
    tg_post_trim trim[TG_POSTPROC_TRIMS];
    size_t n_trims;
} tg_post_item;

typedef struct tg_post_plan {
    tg_post_item *item;
    size_t n;
} tg_post_plan;

typedef struct tg_postproc {
    tg_post_plan plan[2][2]; /* [two texts][with special tokens] */
    size_t added[2];         /* special tokens that truncation leaves room for */
    bool trims;
    uint16_t (*blanks)
        [2];    /* id -> white space at the start and end of its token; only when some part trims */
    char *json; /* as it was read; "null" when there is none */
} tg_postproc;

tg_status tg_postproc_read(tg_postproc *p, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_postproc_fini(tg_postproc *p);

/* After reading. Tokens of ids [0, n); text(arg, id) may be NULL for a hole. TG_DATA: a special token's id is not
 * below n. */
tg_status tg_postproc_build(tg_postproc *p, int32_t n,
                            const char *(*text)(const void *arg, int32_t id), const void *arg,
                            tg_error *err) TG_MUST_CHECK;

/* White space characters at both ends of a text of len bytes, in either alphabet ("Ġ" stands for a space). A text of
 * white space alone counts them twice. */
void tg_postproc_blanks(const char *text, size_t len, uint32_t *leading, uint32_t *trailing);

/* Tokens of one text before special tokens; reused between calls. */
typedef struct tg_tokens {
    tg_ids ids;
    tg_spans spans; /* empty when no offsets are wanted */
    tg_strips strips;
} tg_tokens;
void tg_tokens_fini(tg_tokens *t);

/* A part of them: [start, end). rest: it was cut off from the part that the first row has. */
typedef struct tg_token_range {
    const tg_tokens *tokens;
    size_t start, end;
    bool rest;
} tg_token_range;

/* Where a row is appended; NULL for what is not wanted. */
typedef struct tg_row {
    tg_ids *ids;
    tg_spans *spans;
    tg_buf *types, *special; /* one byte a token */
} tg_row;

/* False: out of memory; then the row is half appended. */
bool tg_postproc_row(const tg_postproc *p, const tg_post_plan *plan,
                     const tg_token_range sequence[2], tg_row *out);

#endif
