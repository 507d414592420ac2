/* The headers of HTTP requests: those of every request, those of a config, and secret ones from a file or the
 * environment. No message ever holds a line of the latter. */
#ifndef TG_ENV_HTTP_HEADERS_H
#define TG_ENV_HTTP_HEADERS_H

#include "common/base/status.h"
#include "common/config/tree.h"

struct curl_slist;

/* plain: a map, or NULL; file, env: NULL for none. TG_CONFIG: not headers; TG_NOINPUT: no such file or variable. */
tg_status tg_http_headers_make(struct curl_slist **out, const tg_node *plain, const char *file,
                               const char *env, tg_error *err) TG_MUST_CHECK;
void tg_http_headers_free(struct curl_slist *headers); /* also NULL */

#endif
