/* Small text helpers: numbers with bounds, nearest names, splitting. */
#ifndef TG_BASE_STR_H
#define TG_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole text must be the number (surrounding space is not allowed); false otherwise or out of range. */
bool tg_parse_i64(const char *text, int64_t *out);
bool tg_parse_f64(const char *text, double *out); /* also inf, nan */

bool tg_str_starts(const char *text, const char *prefix);
bool tg_str_ends(const char *text, const char *suffix);

/* Edit distance (insert, delete, replace, swap of neighbours), capped at limit + 1. */
int tg_edit_distance(const char *a, const char *b, int limit);

/* The name nearest to `wanted`, or NULL when none is close enough to be a typing error. */
const char *tg_nearest(const char *wanted, const char *const *names, size_t n);

#endif
