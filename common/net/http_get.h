/* One blocking HTTP GET with a deadline, for commands that look at an operations port. */
#ifndef TG_NET_HTTP_GET_H
#define TG_NET_HTTP_GET_H

#include "common/base/buf.h"
#include "common/base/status.h"

/* address: "HOST:PORT" or "PORT". The body is appended to out (16 MiB at most); *code is the HTTP status.
 * TG_UNAVAILABLE: no connection; TG_TIMEOUT; TG_PROTOCOL: not HTTP. */
tg_status tg_http_get(const char *address, const char *path, int timeout_ms, int *code, tg_buf *out,
                      tg_error *err) TG_MUST_CHECK;

#endif
