/* The head of an HTTP/1.x request: method and path, with everything checked that is kept. For the
 * operations port, which answers GET and HEAD and reads no bodies. */
#ifndef TG_NET_HTTP_REQUEST_H
#define TG_NET_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { TG_HTTP_HEAD_MAX = 8192, TG_HTTP_PATH_MAX = 255 };

typedef struct tg_http_request {
    bool head;                       /* HEAD: no body is wanted */
    char path[TG_HTTP_PATH_MAX + 1]; /* begins with '/', without the query */
} tg_http_request;

/* 0: more bytes are needed; 200: *out is filled; else the status to answer with (400, 405, 414, 431, 505).
 * Never reads behind len. */
int tg_http_request_parse(const char *bytes, size_t len, tg_http_request *out);

#endif
