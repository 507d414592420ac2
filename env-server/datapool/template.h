/* Prompt templates over a JSON object: "Summarize: {article}" with {field} or {outer.inner}
 * replaced;
 * {{ and }} are plain braces. Texts stand as they are, numbers and truth values as in JSON, lists
 * of these joined by a space. */
#ifndef TG_ENV_TEMPLATE_H
#define TG_ENV_TEMPLATE_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Checks the braces. TG_CONFIG says what is wrong. */
tg_status tg_template_check(const char *text, tg_error *err) TG_MUST_CHECK;
/* Appends the rendered text. TG_DATA: a field is missing or is not a text, number or list. */
tg_status tg_template_render(const char *text, const json_t *object, tg_buf *out,
                             tg_error *err) TG_MUST_CHECK;

/* Walks over the fields of a template that was checked: *at goes on, *field and *len name one. False:
 * there are no more. */
bool tg_template_next(const char **at, const char **field, size_t *len);

/* The value at a dotted path, or NULL. */
const json_t *tg_json_at(const json_t *object, const char *path, size_t path_len);

#endif
