#include "common/base/buf.h"

#include "common/base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *tg_buf_reserve(tg_buf *b, size_t len) {
    if (b->failed || len > ((size_t)-1) / 2 - b->len) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->len + len + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need) cap *= 2;
        char *grown = tg_realloc_array(b->data, cap, 1);
        if (!grown) {
            b->failed = true;
            return NULL;
        }
        b->data = grown;
        b->cap = cap;
    }
    return b->data + b->len;
}

void tg_buf_append(tg_buf *b, const void *bytes, size_t len) {
    char *at = tg_buf_reserve(b, len);
    if (!at) return;
    if (len) memcpy(at, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void tg_buf_puts(tg_buf *b, const char *text) {
    tg_buf_append(b, text, strlen(text));
}

void tg_buf_putc(tg_buf *b, char c) {
    tg_buf_append(b, &c, 1);
}

void tg_buf_printf(tg_buf *b, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *at = len < 0 ? NULL : tg_buf_reserve(b, (size_t)len);
    if (at) {
        vsnprintf(at, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    } else {
        b->failed = true;
    }
    va_end(again);
}

void tg_buf_reset(tg_buf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = '\0';
}

void tg_buf_fini(tg_buf *b) {
    tg_free(b->data);
    *b = (tg_buf){0};
}

char *tg_buf_take(tg_buf *b) {
    tg_buf_append(b, "", 0);
    if (b->failed) {
        tg_buf_fini(b);
        return NULL;
    }
    char *text = b->data;
    *b = (tg_buf){0};
    return text;
}
