/* Conditions on a row: "label == 1", "score >= 0.5", "lang != de", "title contains cat", with dotted
 * fields. Two numbers (also written as texts) compare as numbers, else as texts. A field that a row
 * does not have, or null, meets only "!=". */
#ifndef TG_ENV_FILTER_H
#define TG_ENV_FILTER_H

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
/* Appends the fields' first names (before a dot) to a NULL-terminated list with room for `room`
 * more; false: no room. Names live as long as the filter. */
size_t tg_filter_fields(const tg_filter *f, const char **names, size_t room);

#endif
