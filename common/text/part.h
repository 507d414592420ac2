/* Typed reading of one part (an object) of a tokenizer.json.
 *
 * Every reader knows all keys of its part: a key we do not know is an error that names it, because
 * ignoring it could change ids. `where` is the path for messages ("model",
 * "pre_tokenizer.pretokenizers[1]"). */
#ifndef TG_TEXT_PART_H
#define TG_TEXT_PART_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>

/* Reads and parses a file of at most 1 GiB. big_ints: integers become reals, for files that hold
 * 1e30 as an integer. */
tg_status tg_part_load(const char *path, bool big_ints, json_t **out, tg_error *err) TG_MUST_CHECK;
/* The same from memory; name is for messages. */
tg_status tg_part_parse(const char *name, const char *text, size_t len, bool big_ints, json_t **out,
                        tg_error *err) TG_MUST_CHECK;

/* The part is an object whose keys are all in `known` (space separated). */
tg_status tg_part_check(const json_t *part, const char *where, const char *known,
                        tg_error *err) TG_MUST_CHECK;

/* "type" of a part; NULL when the part is absent or null. */
const char *tg_part_type(const json_t *part);

/* Absent: the default. Wrong type: TG_DATA. */
tg_status tg_part_bool(const json_t *part, const char *where, const char *key, bool def, bool *out,
                       tg_error *err) TG_MUST_CHECK;
/* Absent or null: NULL. The text is borrowed from the part. */
tg_status tg_part_str(const json_t *part, const char *where, const char *key, const char **out,
                      tg_error *err) TG_MUST_CHECK;

/* Owned compact JSON text of a part, for saving (tg_free); NULL: out of memory. */
char *tg_part_dump(const json_t *part);

/* Appends a JSON string literal. */
void tg_part_write_str(tg_buf *out, const char *text, size_t len);

#endif
