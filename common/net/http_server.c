/* Connections in a list, oldest first. A connection is: reading its head, then writing its answer, then
 * closing; a timer ends it in any of these states.
 *
 * Invariant: a connection is in the list until its handles are being closed; its memory goes with the
 * last close callback. */
#include "common/net/http_server.h"

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/http_request.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONNECTIONS = 64, TIMEOUT_MS = 5000, BACKLOG = 128, DISCARD_MAX = 65536 };

typedef struct conn conn;

struct tg_http_server {
    tg_http_opts opts;
    uv_loop_t *loop;
    uv_tcp_t listener;
    conn *first, **last; /* oldest first */
    int n;
    int alive; /* the listener and every connection not yet freed; the last frees the server */
    char address[80];
    tg_http_stats stats;
};

struct conn {
    conn *next;
    tg_http_server *server;
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_write_t write;
    uv_shutdown_t shutdown;
    int handles;
    bool answered;
    size_t discarded; /* bytes read after the answer */
    size_t len;
    char head[TG_HTTP_HEAD_MAX + 1];
    tg_buf out;
};

static void unref(tg_http_server *s) {
    if (--s->alive == 0) tg_free(s);
}

/* ---- one connection ------------------------------------------------------------------------- */

static void on_conn_closed(uv_handle_t *handle) {
    conn *c = handle->data;
    if (--c->handles > 0) return;
    tg_http_server *s = c->server;
    tg_buf_fini(&c->out);
    tg_free(c);
    unref(s);
}

static void end(conn *c) {
    tg_http_server *s = c->server;
    conn **at = &s->first;
    while (*at && *at != c) at = &(*at)->next;
    if (!*at) return; /* already ending */
    *at = c->next;
    if (s->last == &c->next) s->last = at;
    s->n--;
    uv_close((uv_handle_t *)&c->tcp, on_conn_closed);
    uv_close((uv_handle_t *)&c->timer, on_conn_closed);
}

static void on_timeout(uv_timer_t *timer) {
    conn *c = timer->data;
    c->server->stats.timeouts++;
    end(c);
}

static void on_shutdown(uv_shutdown_t *req, int status) {
    (void)status; /* the peer closes next, and the read ends the connection; else the timer does */
    (void)req;
}

/* Closing at once could reset the connection before the peer has read the answer. */
static void on_written(uv_write_t *req, int status) {
    conn *c = req->data;
    if (status == UV_ECANCELED) return; /* being closed */
    if (status < 0 || uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) != 0) end(c);
}

static const char *reason(int status) {
    switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
    }
}

static void send_reply(conn *c, tg_http_reply *r, bool head_only) {
    tg_buf_printf(&c->out,
                  "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                  "Cache-Control: no-store\r\nConnection: close\r\n%s\r\n",
                  r->status, reason(r->status), r->type, r->body.len,
                  r->status == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (!head_only && r->body.len) tg_buf_append(&c->out, r->body.data, r->body.len);
    c->write.data = c;
    uv_buf_t bytes = uv_buf_init(c->out.data, (unsigned)c->out.len);
    if (c->out.failed || uv_write(&c->write, (uv_stream_t *)&c->tcp, &bytes, 1, on_written) != 0)
        end(c);
}

static void answer(conn *c, int status, const tg_http_request *request) {
    tg_http_server *s = c->server;
    tg_http_reply r = {.status = status, .type = "text/plain; charset=utf-8"};
    c->answered = true;
    if (status == 200) {
        s->stats.requests++;
        s->opts.handle(s->opts.arg, request->path, &r);
        if (r.body.failed) {
            tg_buf_reset(&r.body);
            r.status = 500;
        }
    } else {
        s->stats.refused++;
        tg_buf_printf(&r.body, "%s\n", reason(status));
    }
    send_reply(c, &r, request->head);
    tg_buf_fini(&r.body);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    (void)suggested;
    conn *c = handle->data;
    if (c->answered) c->len = 0; /* what comes after the request is read and forgotten */
    *buf = uv_buf_init(c->head + c->len, (unsigned)(TG_HTTP_HEAD_MAX - c->len));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    conn *c = stream->data;
    (void)buf;
    if (n == 0) return;
    if (n < 0) {
        end(c);
        return;
    }
    c->len += (size_t)n;
    if (c->answered) {
        c->discarded += (size_t)n;
        if (c->discarded > DISCARD_MAX) end(c);
        return;
    }
    tg_http_request request;
    int status = tg_http_request_parse(c->head, c->len, &request);
    if (status != 0) answer(c, status, &request);
}

static void on_connection(uv_stream_t *listener, int status) {
    tg_http_server *s = listener->data;
    conn *c = status < 0 ? NULL : tg_alloc(sizeof *c);
    if (!c) return; /* tried again with the next connection */
    c->server = s;
    uv_tcp_init(s->loop, &c->tcp);
    uv_timer_init(s->loop, &c->timer);
    c->tcp.data = c->timer.data = c;
    c->handles = 2;
    s->alive++;
    *s->last = c;
    s->last = &c->next;
    s->n++;
    if (s->n > s->opts.max_connections) {
        s->stats.pushed_out++;
        end(s->first);
    }
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0) {
        end(c);
        return;
    }
    uv_timer_start(&c->timer, on_timeout, (uint64_t)s->opts.timeout_ms, 0);
}

/* ---- the listener --------------------------------------------------------------------------- */

tg_status tg_http_address(const char *text, struct sockaddr_storage *out, tg_error *err) {
    char host[128] = "127.0.0.1";
    const char *port = text, *colon = strrchr(text, ':');
    if (colon) {
        const char *from = text, *to = colon;
        if (*from == '[' && to > from && to[-1] == ']') from++, to--;
        size_t len = (size_t)(to - from);
        if (len == 0 || len >= sizeof host)
            return tg_fail(err, TG_USAGE, "%s: expected HOST:PORT", text);
        memcpy(host, from, len);
        host[len] = '\0';
        port = colon + 1;
    }
    int64_t number;
    if (!tg_parse_i64(port, &number) || number < 0 || number > 65535)
        return tg_fail(err, TG_USAGE, "%s: expected HOST:PORT with a port of 0 to 65535", text);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0) return tg_fail(err, TG_USAGE, "%s: no such host: %s", text, gai_strerror(code));
    memset(out, 0, sizeof *out);
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return TG_OK;
}

static void name_address(tg_http_server *s) {
    struct sockaddr_storage a;
    int len = sizeof a;
    char host[64] = "?";
    if (uv_tcp_getsockname(&s->listener, (struct sockaddr *)&a, &len) != 0) return;
    bool six = a.ss_family == AF_INET6;
    if (six)
        uv_ip6_name((struct sockaddr_in6 *)&a, host, sizeof host);
    else
        uv_ip4_name((struct sockaddr_in *)&a, host, sizeof host);
    unsigned port =
        ntohs(six ? ((struct sockaddr_in6 *)&a)->sin6_port : ((struct sockaddr_in *)&a)->sin_port);
    snprintf(s->address, sizeof s->address, six ? "[%s]:%u" : "%s:%u", host, port);
}

static void on_listener_closed(uv_handle_t *handle) {
    unref(handle->data);
}

tg_status tg_http_server_open(tg_http_server **out, uv_loop_t *loop, const tg_http_opts *opts,
                              tg_error *err) {
    struct sockaddr_storage address;
    *out = NULL;
    tg_status st = tg_http_address(opts->address, &address, err);
    if (st != TG_OK) return st;
    tg_http_server *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->opts = *opts;
    s->loop = loop;
    s->last = &s->first;
    if (s->opts.max_connections <= 0) s->opts.max_connections = MAX_CONNECTIONS;
    if (s->opts.timeout_ms <= 0) s->opts.timeout_ms = TIMEOUT_MS;
    uv_tcp_init(loop, &s->listener);
    s->listener.data = s;
    s->alive = 1;
    int code = uv_tcp_bind(&s->listener, (struct sockaddr *)&address, 0);
    if (code == 0) code = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
    if (code != 0) {
        uv_close((uv_handle_t *)&s->listener, on_listener_closed);
        return tg_fail(err, TG_UNAVAILABLE, "--http %s: cannot listen: %s", opts->address,
                       uv_strerror(code));
    }
    name_address(s);
    *out = s;
    return TG_OK;
}

void tg_http_server_close(tg_http_server **server) {
    tg_http_server *s = *server;
    if (!s) return;
    *server = NULL;
    while (s->first) end(s->first);
    uv_close((uv_handle_t *)&s->listener, on_listener_closed);
}

const char *tg_http_server_address(const tg_http_server *s) {
    return s->address;
}

const tg_http_stats *tg_http_server_stats(const tg_http_server *s) {
    return &s->stats;
}
