/* The pre-tokenizer: cuts text into the pieces that the model sees.
 *
 * Built: ByteLevel (it must come last), Split by a regular expression or plain text with every
 * behaviour, CharDelimiterSplit, Digits, BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Metaspace,
 * UnicodeScripts, FixedLength and Sequence of these. Others are refused by name. */
#ifndef TG_TEXT_PRETOK_H
#define TG_TEXT_PRETOK_H

#include "common/text/text_model.h"
#include "common/text/regex.h"

typedef enum tg_pretok_kind {
    TG_PRETOK_SPLIT,
    TG_PRETOK_DIGITS,
    TG_PRETOK_WHITESPACE, /* \w+|[^\w\s]+ */
    TG_PRETOK_WHITESPACE_SPLIT,
    TG_PRETOK_PUNCTUATION,
    TG_PRETOK_METASPACE,
    TG_PRETOK_SCRIPTS,
    TG_PRETOK_FIXED_LENGTH,
    TG_PRETOK_BYTE_LEVEL
} tg_pretok_kind;

/* What becomes of the matches of a Split. */
typedef enum tg_split_behavior {
    TG_SPLIT_REMOVED,
    TG_SPLIT_ISOLATED,
    TG_SPLIT_MERGED_WITH_PREVIOUS,
    TG_SPLIT_MERGED_WITH_NEXT,
    TG_SPLIT_CONTIGUOUS
} tg_split_behavior;

typedef struct tg_pretok_part {
    tg_pretok_kind kind;
    tg_regex *regex; /* Split */
    tg_split_behavior behavior;
    bool invert;
    bool prefix_space, use_regex; /* ByteLevel; Metaspace: prefix_space is "always" */
    bool prefix_first;            /* Metaspace: only at the start of the text */
    bool split;                   /* Metaspace */
    char mark[5];                 /* Metaspace: what stands for a space, in UTF-8 */
    size_t length;                /* FixedLength: characters of a piece */
} tg_pretok_part;

enum { TG_PRETOK_MAX = 16 };

typedef struct tg_pretok {
    tg_pretok_part part[TG_PRETOK_MAX];
    size_t n;
    bool byte_level;   /* pieces are raw bytes of the byte-level alphabet */
    bool wants_places; /* text must carry where it came from, even when no offsets are asked for */
    char *json;        /* as it was read; "null" when there is none */
} tg_pretok;

tg_status tg_pretok_read(tg_pretok *p, const json_t *part, tg_error *err) TG_MUST_CHECK;
void tg_pretok_fini(tg_pretok *p);

/* Cuts text and gives each piece to the model, in order. */
tg_status tg_pretok_run(const tg_pretok *p, const tg_text_model *model, tg_scratch *s, tg_view text,
                        tg_sink *out, tg_error *err) TG_MUST_CHECK;

#endif
