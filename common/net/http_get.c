/* A request with Connection: close, so that the answer ends with the connection. Every wait is bounded by
 * what is left of the deadline. */
#include "common/net/http_get.h"

#include "common/base/clock.h"
#include "common/net/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_ANSWER = 16 << 20, CHUNK = 65536 };

static tg_status wait_for(int fd, short events, uint64_t deadline_ms, const char *address,
                          tg_error *err) {
    for (;;) {
        uint64_t now = tg_clock_ms();
        if (now >= deadline_ms)
            return tg_fail(err, TG_TIMEOUT, "%s does not answer in time", address);
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, (int)(deadline_ms - now));
        if (n > 0) return TG_OK;
        if (n < 0 && errno != EINTR) return tg_fail_errno(err, TG_IO, "%s", address);
    }
}

static tg_status start(const char *address, uint64_t deadline_ms, int *out, tg_error *err) {
    struct sockaddr_storage to;
    tg_status st = tg_http_address(address, &to, err);
    if (st != TG_OK) return st;
    socklen_t size =
        to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return tg_fail_errno(err, TG_UNAVAILABLE, "no socket");
    *out = fd;
    if (connect(fd, (struct sockaddr *)&to, size) != 0 && errno != EINPROGRESS)
        return tg_fail_errno(err, TG_UNAVAILABLE, "%s: cannot connect", address);
    st = wait_for(fd, POLLOUT, deadline_ms, address, err);
    int code = 0;
    socklen_t len = sizeof code;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len);
    if (st == TG_OK && code != 0)
        return tg_fail(err, TG_UNAVAILABLE, "%s: cannot connect: %s", address, strerror(code));
    return st;
}

static tg_status read_all(int fd, const char *address, uint64_t deadline_ms, tg_buf *out,
                          tg_error *err) {
    while (out->len < MAX_ANSWER) {
        char *room = tg_buf_reserve(out, CHUNK);
        if (!room) return tg_fail_nomem(err, CHUNK);
        ssize_t n = recv(fd, room, CHUNK, 0);
        if (n == 0) return TG_OK;
        if (n > 0) {
            out->len += (size_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return tg_fail_errno(err, TG_UNAVAILABLE, "%s: the connection broke", address);
        tg_status st = wait_for(fd, POLLIN, deadline_ms, address, err);
        if (st != TG_OK) return st;
    }
    return tg_fail(err, TG_PROTOCOL, "%s: an answer of more than %d bytes", address, MAX_ANSWER);
}

/* "HTTP/1.1 200 OK\r\n…\r\n\r\nbody" */
static tg_status split(const char *address, tg_buf *raw, int *code, tg_buf *out, tg_error *err) {
    tg_buf_putc(raw, '\0');
    if (raw->failed) return tg_fail_nomem(err, raw->len);
    char *body = strstr(raw->data, "\r\n\r\n");
    if (sscanf(raw->data, "HTTP/1.%*1[01] %3d", code) != 1 || !body)
        return tg_fail(err, TG_PROTOCOL, "%s does not speak HTTP", address);
    body += 4;
    tg_buf_append(out, body, raw->len - 1 - (size_t)(body - raw->data));
    return out->failed ? tg_fail_nomem(err, raw->len) : TG_OK;
}

tg_status tg_http_get(const char *address, const char *path, int timeout_ms, int *code, tg_buf *out,
                      tg_error *err) {
    uint64_t deadline_ms = tg_clock_ms() + (uint64_t)timeout_ms;
    char request[512];
    int fd = -1;
    tg_buf raw = {0};
    int len = snprintf(request, sizeof request,
                       "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, address);
    if (len < 0 || (size_t)len >= sizeof request)
        return tg_fail(err, TG_USAGE, "%s: too long", address);
    tg_status st = start(address, deadline_ms, &fd, err);
    if (st == TG_OK && send(fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        st = tg_fail_errno(err, TG_UNAVAILABLE, "%s: the request was not sent", address);
    if (st == TG_OK) st = read_all(fd, address, deadline_ms, &raw, err);
    if (st == TG_OK) st = split(address, &raw, code, out, err);
    if (fd >= 0) close(fd);
    tg_buf_fini(&raw);
    return st;
}
