/* Conditions on a row: "label == 1", "score >= 0.5", "lang != de", "title contains cat", with dotted
 * fields. Two numbers (also written as texts) compare as numbers, else as texts. A field that a row
 * does not have, or null, meets only "!=". */
#ifndef TG_ENV_FILTER_H
#define TG_ENV_FILTER_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/config/tree.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tg_filter {
    struct tg_condition *conditions; /* private */
    size_t n;                        /* 0: every row passes */
} tg_filter;

/* node: a text or a list of texts; NULL: none. TG_CONFIG says what is wrong. */
tg_status tg_filter_read(tg_filter *f, const tg_node *node, tg_error *err) TG_MUST_CHECK;
void tg_filter_fini(tg_filter *f);
/* Does the row meet all conditions? TG_DATA: a field is a list or an object. */
tg_status tg_filter_match(const tg_filter *f, const json_t *row, bool *keep,
                          tg_error *err) TG_MUST_CHECK;
/* Appends to *n columns, of which there is room for `room`, those that the filter `node` looks at: the fields' parts before a
 * dot, each once, copied into the arena. TG_CONFIG: there are more. */
tg_status tg_filter_columns(const tg_node *node, tg_arena *arena, const char **columns, size_t *n,
                            size_t room, tg_error *err) TG_MUST_CHECK;

#endif
