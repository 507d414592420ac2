/* Code point arrays. Owned by one thread at a time. */
#include "env-server/metric/points.h"

#include "common/base/alloc.h"
#include "env-server/metric/pystr.h"

#include <string.h>

bool tg_points_reserve(tg_points *p, size_t n) {
    if (n <= p->cap) return true;
    size_t cap = p->cap ? p->cap : 256;
    while (cap < n) cap = cap > SIZE_MAX / 2 ? n : 2 * cap;
    uint32_t *c = tg_realloc_array(p->c, cap, sizeof *c);
    if (!c) return false;
    p->c = c, p->cap = cap;
    return true;
}

bool tg_points_read(tg_points *p, const char *text, size_t len) {
    if (!tg_points_reserve(p, len ? len : 1)) return false;
    size_t n = 0;
    for (size_t at = 0, bytes; at < len; at += bytes)
        p->c[n++] = tg_py_point(text + at, len - at, &bytes);
    p->n = n;
    return true;
}

void tg_points_write(tg_buf *out, const uint32_t *c, size_t n) {
    char *to = tg_buf_reserve(out, 4 * n + 1);
    if (!to) return;
    char *begin = to;
    for (size_t i = 0; i < n; i++) {
        if (c[i] < 0x80)
            *to++ = (char)c[i];
        else
            to += tg_py_put(c[i], to);
    }
    out->len += (size_t)(to - begin);
}

void tg_points_fini(tg_points *p) {
    tg_free(p->c);
    memset(p, 0, sizeof *p);
}
