/* JSON is YAML, but for one thing: characters beyond U+FFFF written as two escapes, as Python's json.dumps does. */
#ifndef TG_CONFIG_JSON_PAIRS_H
#define TG_CONFIG_JSON_PAIRS_H

#include "common/base/buf.h"

/* The same document with YAML's escape in place of every such pair; lines stay where they are. False: the text is not JSON, or there is
 * no memory (out->failed). */
bool tg_json_join_pairs(const char *text, size_t len, tg_buf *out);

#endif
