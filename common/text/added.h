/* Added tokens: text that is found before anything else cuts it ("<|endoftext|>"), and which of it
 * is special.
 *
 * Tokens marked "normalized" are searched in the normalised text, the others in the text as given.
 * The longest token at the leftmost place wins; lstrip/rstrip swallow white space beside it,
 * single_word wants no word character beside it. */
#ifndef TG_TEXT_ADDED_H
#define TG_TEXT_ADDED_H

#include "common/base/map.h"
#include "common/text/normalizer.h"
#include "common/text/part.h"
#include "common/text/vocab.h"

typedef struct tg_added_token {
    char *content;
    size_t len;
    int32_t id;
    bool special, single_word, lstrip, rstrip, normalized;
} tg_added_token;

typedef struct tg_pattern {
    char *text;
    size_t len;
    const tg_added_token *token;
} tg_pattern;

/* Patterns in byte order; begins[b] says that one starts with byte b. */
typedef struct tg_matcher {
    tg_pattern *patterns;
    size_t n;
    bool begins[256];
} tg_matcher;

typedef struct tg_added {
    tg_added_token *tokens; /* read-only, n of them, in the order they were added */
    size_t n, cap;
    tg_map index; /* content -> place in tokens */
    tg_matcher raw, normal;
} tg_added;

/* Reads "added_tokens". Ids follow Hugging Face's rule: a token of the vocabulary keeps its id,
 * another gets the next free one; a file that says otherwise gets a warning. */
tg_status tg_added_read(tg_added *a, const json_t *list, const tg_vocab *vocab,
                        tg_error *err) TG_MUST_CHECK;
/* One token object; its content is borrowed from item. */
tg_status tg_added_read_token(tg_added_token *token, const json_t *item, const char *where,
                              tg_error *err) TG_MUST_CHECK;
/* Adds one (copied), or replaces the rules of the one with that text; special stays special. Its id
 * is found, not taken from the argument. Empty text: nothing. */
tg_status tg_added_add(tg_added *a, const tg_vocab *vocab, const tg_added_token *token,
                       tg_error *err) TG_MUST_CHECK;
/* After the last token: builds the matchers. */
tg_status tg_added_build(tg_added *a, const tg_normalizer *normalizer, tg_error *err) TG_MUST_CHECK;
void tg_added_fini(tg_added *a);

const tg_added_token *tg_added_find(const tg_added *a, const char *content,
                                    size_t len); /* NULL: none */
void tg_added_write_json(const tg_added *a, tg_buf *out);

/* Walks the tokens in a text. Start with {0}; each call gives the next token and its place [*start,
 * *end), which may overlap the one before when white space was swallowed. NULL: no more. */
typedef struct tg_added_cursor {
    size_t pos;  /* where to search on */
    size_t done; /* end of what the last token took */
} tg_added_cursor;
const tg_added_token *tg_added_next(const tg_matcher *m, const char *s, size_t len,
                                    tg_added_cursor *c, size_t *start, size_t *end);

#endif
