/* A growable byte buffer with a sticky failure, so that a writer checks once at the end.
 *
 *     tg_buf b = {0};
 *     tg_buf_printf(&b, "%d items", n);
 *     if (b.failed) ...                       // some append ran out of memory
 *     tg_buf_fini(&b);
 *
 * data is always NUL-terminated behind len (once anything was appended). */
#ifndef TG_BASE_BUF_H
#define TG_BASE_BUF_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_buf {
    char *data; /* read-only; NULL while empty */
    size_t len; /* read-only */
    bool failed;
    size_t cap; /* private */
} tg_buf;

void tg_buf_append(tg_buf *b, const void *bytes, size_t len);
void tg_buf_puts(tg_buf *b, const char *text);
void tg_buf_putc(tg_buf *b, char c);
void tg_buf_printf(tg_buf *b, const char *fmt, ...) TG_PRINTF(2, 3);
/* Room for len more bytes at data + len; returns that place, or NULL. The caller then adds to b->len. */
char *tg_buf_reserve(tg_buf *b, size_t len);
void tg_buf_reset(tg_buf *b); /* len 0, memory and failure flag: memory kept, flag cleared */
void tg_buf_fini(tg_buf *b);
/* Returns owned NUL-terminated text (tg_free) and empties the buffer; NULL if it had failed. */
char *tg_buf_take(tg_buf *b);

#endif
