/* What `textgen top` shows: one row for each process, below it one for each worker it knows. */
#ifndef TG_CLI_TOP_ROWS_H
#define TG_CLI_TOP_ROWS_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_top_row {
    char name[64];   /* program, or the worker's id */
    char source[64]; /* the address asked; with `name` the same from poll to poll */
    char state[64];
    bool child, down;
    double sessions, slots, capacity, steps, episodes, in_flight, oldest_ms, lag_us,
        rss_bytes; /* -1: not said */
} tg_top_row;

typedef struct tg_top_rows {
    tg_top_row *rows; /* tg_free */
    size_t n, cap;
    uint64_t at_ns;
} tg_top_rows;

/* Appends the rows of one /status page. TG_DATA: not such a page. */
tg_status tg_top_rows_add(tg_top_rows *t, const char *source, const char *json, size_t len,
                          tg_error *err) TG_MUST_CHECK;
/* Appends a row that says why a process was not seen. */
tg_status tg_top_rows_add_down(tg_top_rows *t, const char *source, const char *why,
                               tg_error *err) TG_MUST_CHECK;
/* The table, with rates since `before` (NULL: without). */
void tg_top_rows_write(const tg_top_rows *t, const tg_top_rows *before, bool color, tg_buf *out);
void tg_top_rows_fini(tg_top_rows *t);

#endif
