/* Where the reader of a safetensors header stands, and the pieces of JSON it knows. Private to st_header.c. */
#ifndef TG_NN_ST_CURSOR_H
#define TG_NN_ST_CURSOR_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_st_cursor {
    const char *text, *at, *end; /* borrowed */
    tg_error *err;
    tg_buf key; /* the last string read; of one longer than a name may be, its beginning. Owned */
} tg_st_cursor;

/* TG_DATA: what is wrong at this byte. */
tg_status tg_st_bad(tg_st_cursor *c, const char *what);
void tg_st_skip_space(tg_st_cursor *c);
/* Goes behind the character if it comes next, with space before it. */
bool tg_st_accept(tg_st_cursor *c, char wanted);
/* A string into c->key. */
tg_status tg_st_read_string(tg_st_cursor *c) TG_MUST_CHECK;
bool tg_st_key_is(const tg_st_cursor *c, const char *name);
/* [n, n, ..] of at most max non-negative integers below 2^62. */
tg_status tg_st_read_numbers(tg_st_cursor *c, int64_t *out, int max, int *n) TG_MUST_CHECK;

#endif
