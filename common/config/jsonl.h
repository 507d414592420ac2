/* Lines in, lines out: one JSON value a line, in order, one output line for each input line.
 *
 *     tg_jsonl in;  tg_jsonl_open(&in, stdin);
 *     while (tg_jsonl_next(&in)) {               // a blank line is a bad line: the counts of lines stay equal
 *         if (!in.value) tg_jsonl_put_error(&out, in.number, in.why);      // {"error": …} in its place
 *     }
 *     st = tg_jsonl_check(&in, err);  tg_jsonl_close(&in);
 *     return tg_lines_report("textgen …", in.n_bad, in.number);        // the exit code: 65 or 0 */
#ifndef TG_CONFIG_JSONL_H
#define TG_CONFIG_JSONL_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct tg_jsonl {
    FILE *in;   /* borrowed */
    char *line; /* private */
    size_t cap;
    int error;   /* errno of a read that failed */
    long number; /* of the current line, 1-based */
    json_t *
        value; /* of the current line, until the next one; NULL: not JSON, `why` says what is wrong */
    char why[256];
    long n_bad; /* lines that were not JSON; a caller may add those it could not use */
} tg_jsonl;

void tg_jsonl_open(tg_jsonl *j, FILE *in);
/* The next line; false: the input ended or could not be read. */
bool tg_jsonl_next(tg_jsonl *j);
/* TG_IO when reading ended for another reason than the end of the input. */
tg_status tg_jsonl_check(const tg_jsonl *j, tg_error *err) TG_MUST_CHECK;
void tg_jsonl_close(tg_jsonl *j); /* n_bad stays readable */

/* The same for lines of text that were read from `in`, `number` of them. */
tg_status tg_lines_check(FILE *in, long number, tg_error *err) TG_MUST_CHECK;
/* "name: 2 of 9 lines have no result: see "error" in the output" on stderr, when there are such; returns the exit code. */
int tg_lines_report(const char *name, long bad, long lines);

/* {"error": "line 3: …"} and a newline. */
void tg_jsonl_put_error(tg_buf *out, long number, const char *why);

#endif
