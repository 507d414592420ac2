/* One line is held at a time; a value may contain NUL characters. */
#include "common/config/jsonl.h"

#include "common/config/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void tg_jsonl_open(tg_jsonl *j, FILE *in) {
    *j = (tg_jsonl){.in = in};
}

void tg_jsonl_close(tg_jsonl *j) {
    json_decref(j->value);
    free(j->line); /* getline's memory */
    j->value = NULL;
    j->line = NULL;
}

bool tg_jsonl_next(tg_jsonl *j) {
    json_decref(j->value);
    j->value = NULL;
    ssize_t len = getline(&j->line, &j->cap, j->in);
    if (len < 0) {
        if (!feof(j->in)) j->error = errno;
        return false;
    }
    j->number++;
    json_error_t e;
    if (strspn(j->line, " \t\r\n") == (size_t)len) {
        snprintf(j->why, sizeof j->why, "expected a JSON value, found an empty line");
        j->n_bad++;
        return true;
    }
    j->value = json_loadb(j->line, (size_t)len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!j->value) {
        snprintf(j->why, sizeof j->why, "not JSON: %s (column %d)", e.text, e.column);
        j->n_bad++;
    }
    return true;
}

tg_status tg_jsonl_check(const tg_jsonl *j, tg_error *err) {
    if (!j->error) return TG_OK;
    errno = j->error;
    return tg_fail_errno(err, TG_IO, "cannot read line %ld of the input", j->number + 1);
}

tg_status tg_lines_check(FILE *in, long number, tg_error *err) {
    if (!ferror(in)) return TG_OK;
    return tg_fail_errno(err, TG_IO, "cannot read line %ld of the input", number + 1);
}

int tg_lines_report(const char *name, long bad, long lines) {
    if (!bad) return 0;
    fprintf(stderr, "%s: %ld of %ld lines have no result: see \"error\" in the output\n", name, bad,
            lines);
    return tg_status_exit_code(TG_DATA);
}

void tg_jsonl_put_error(tg_buf *out, long number, const char *why) {
    char text[TG_ERROR_MAX + 32];
    snprintf(text, sizeof text, "line %ld: %s", number, why);
    tg_buf_puts(out, "{\"error\": ");
    tg_json_string(out, text, strlen(text));
    tg_buf_puts(out, "}\n");
}
