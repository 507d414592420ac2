/* Text as an array of code points that grows: what the rules of a word splitter work on. */
#ifndef TG_ENV_POINTS_H
#define TG_ENV_POINTS_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_points {
    uint32_t *c;
    size_t n;
    size_t cap; /* private */
} tg_points;

bool tg_points_reserve(tg_points *p, size_t n); /* room for n in all; false: out of memory */
bool tg_points_read(tg_points *p, const char *text, size_t len); /* replaces the content */
/* Appends c[0 .. n) as UTF-8, as tg_py_put writes it; failure is sticky in out. */
void tg_points_write(tg_buf *out, const uint32_t *c, size_t n);
void tg_points_fini(tg_points *p);

#endif
