/* Lines in, lines out: one JSON value a line, in order, one output line for each input line.
 *
 *     tg_jsonl in;  tg_jsonl_open(&in, stdin);
 *     while (tg_jsonl_next(&in)) {                 // a blank line is a bad line: the counts of lines stay equal
 *         if (!in.object) tg_jsonl_print_error(&out, in.number, in.why);   // {"error": …} in its place
 *     }
 *     exit code: in.n_bad ? 65 : 0;   tg_jsonl_close(&in); */
#ifndef TG_LEARNER_CLI_JSONL_H
#define TG_LEARNER_CLI_JSONL_H

#include "common/base/status.h"
#include "common/text/tokenizer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct tg_jsonl {
    FILE *in;
    char *line; /* private */
    size_t cap;
    long number;    /* of the current line, 1-based */
    json_t *object; /* the current line's object; NULL: not one, `why` says what is wrong */
    char why[256];
    long n_bad;
} tg_jsonl;

void tg_jsonl_open(tg_jsonl *j, FILE *in);
bool tg_jsonl_next(tg_jsonl *j);
void tg_jsonl_close(tg_jsonl *j);

/* {"error": "line 3: …"} */
void tg_jsonl_print_error(tg_buf *out, long number, const char *why);

/* Token ids of a line: object[ids_key] as a list of integers in [0, vocab), or object[text_key] through the tokenizer
 * (NULL: text is refused). Exactly one of the two must be there. */
tg_status tg_jsonl_ids(const json_t *object, const char *ids_key, const char *text_key,
                       const tg_tokenizer *tokenizer, int vocab, tg_ids *out,
                       tg_error *err) TG_MUST_CHECK;

#endif
