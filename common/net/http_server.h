/* A small HTTP/1.1 server on a libuv loop, for health and figures: GET and HEAD, one request to a connection.
 *
 *     tg_http_opts o = {.address = "127.0.0.1:9601", .handle = handle, .arg = me};
 *     tg_http_server_open(&server, loop, &o, err);
 *     static void handle(void *arg, const char *path, tg_http_reply *r) { tg_buf_puts(&r->body, "ok\n"); }
 *
 * A head has at most 8 KiB, an exchange five seconds, and of 64 connections the oldest makes room for a new
 * one: whoever holds connections open keeps nobody out. Everything happens on the loop's thread. */
#ifndef TG_NET_HTTP_SERVER_H
#define TG_NET_HTTP_SERVER_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdint.h>
#include <uv.h>

typedef struct tg_http_server tg_http_server;

typedef struct tg_http_reply {
    int status;       /* 200 unless changed */
    const char *type; /* text/plain unless changed; a literal */
    tg_buf body;
} tg_http_reply;

typedef struct tg_http_opts {
    const char
        *address; /* "HOST:PORT", "[::1]:PORT" or "PORT" (on 127.0.0.1); port 0: any free one */
    int max_connections; /* 0: 64 */
    int timeout_ms;      /* of a whole exchange; 0: 5000 */
    void (*handle)(void *arg, const char *path, tg_http_reply *reply);
    void *arg;
} tg_http_opts;

typedef struct tg_http_stats {
    uint64_t requests, refused, timeouts,
        pushed_out; /* refused: answered with 4xx or 5xx by the parser */
} tg_http_stats;

/* TG_USAGE: not an address; TG_UNAVAILABLE: it cannot be listened on. */
tg_status tg_http_server_open(tg_http_server **out, uv_loop_t *loop, const tg_http_opts *opts,
                              tg_error *err) TG_MUST_CHECK;
/* The memory is released by the loop's next turns. */
void tg_http_server_close(tg_http_server **server);
const char *tg_http_server_address(const tg_http_server *server); /* "127.0.0.1:9601" */
const tg_http_stats *tg_http_server_stats(const tg_http_server *server);

/* "HOST:PORT", "[::1]:PORT" or "PORT" → a numeric address. */
tg_status tg_http_address(const char *text, struct sockaddr_storage *out,
                          tg_error *err) TG_MUST_CHECK;

#endif
