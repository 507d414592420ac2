/* Values that separated text holds as text: JSON, or what Python's str() made of a list, a dict or a
 * numpy array ("['a', 'b']", "{'de': 'x'}", "['a' 'b']"). */
#ifndef TG_ENV_PYLITERAL_H
#define TG_ENV_PYLITERAL_H

#include "common/base/status.h"

#include <jansson.h>
#include <stddef.h>

/* *out is owned. TG_DATA: neither; the message has a column. */
tg_status tg_py_literal(const char *text, size_t len, json_t **out, tg_error *err) TG_MUST_CHECK;

#endif
