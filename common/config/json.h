/* JSON text: strings, numbers and config nodes, appended to a buffer. */
#ifndef TG_CONFIG_JSON_H
#define TG_CONFIG_JSON_H

#include "common/base/buf.h"
#include "common/config/tree.h"

/* A node as JSON text, typed as tg_node_bool/int/float see it; NULL is null. What it writes loads
 * to an equal tree (infinities and NaN as the strings ".inf", "-.inf", ".nan", which tg_node_float
 * reads). */
void tg_node_json(const tg_node *n, tg_buf *out);
/* A JSON string literal in valid UTF-8; bytes that are none become U+FFFD. */
void tg_json_string(tg_buf *out, const char *text, size_t len);
/* How many bytes, from the start, are UTF-8: JSON is nothing else. */
size_t tg_json_utf8(const char *text, size_t len);
/* A number that reads back to the same double and stays a float ("1.0", "1.0e-06"); NaN and
 * infinities become null. */
void tg_json_number(tg_buf *out, double value);

#endif
