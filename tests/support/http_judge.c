/* A thread for each connection, which is kept open as long as the client does; HTTP/1.1 with Content-Length only. */
#include "tests/support/http_judge.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_REQUEST = 1 << 20 };

static bool readable(http_judge *j, int fd) {
    while (!atomic_load(&j->stop)) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) > 0) return true;
    }
    return false;
}

/* Reads one request; its body, or NULL at the end. */
static const char *read_request(http_judge *j, int fd, char *buf) {
    size_t len = 0;
    for (;;) {
        char *body, *field;
        buf[len] = 0;
        if ((body = strstr(buf, "\r\n\r\n")) && (field = strcasestr(buf, "content-length:"))) {
            size_t n = strtoul(field + 15, NULL, 10);
            if (len >= (size_t)(body + 4 - buf) + n) {
                snprintf(j->seen, sizeof j->seen, "%.*s", (int)(body - buf), buf);
                return body + 4;
            }
        }
        if (len + 1 >= MAX_REQUEST || !readable(j, fd)) return NULL;
        ssize_t got = recv(fd, buf + len, MAX_REQUEST - 1 - len, 0);
        if (got <= 0) return NULL;
        len += (size_t)got;
    }
}

static void send_text(int fd, const char *text, size_t len) {
    while (len) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0) return;
        text += n, len -= (size_t)n;
    }
}

static void send_line(int fd, const char *text) {
    send_text(fd, text, strlen(text));
}

static void respond(int fd, int status, const char *headers, const char *body) {
    char head[512];
    int n = snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\n\r\n", status,
                     headers, strlen(body));
    send_text(fd, head, (size_t)n);
    send_line(fd, body);
}

static void judge(int fd, const char *body, bool one_less) {
    json_t *request = json_loads(body, 0, NULL), *results = json_array(), *item;
    size_t i, n = json_array_size(json_object_get(request, "items"));
    json_array_foreach(json_object_get(request, "items"), i, item) {
        const char *text = json_string_value(json_object_get(item, "completion"));
        if (!one_less || i + 1 < n)
            json_array_append_new(results, json_real((double)strlen(text ? text : "")));
    }
    json_t *reply = json_pack("{s:o}", "results", results);
    char *text = json_dumps(reply, 0);
    respond(fd, 200, "", text);
    free(text);
    json_decref(reply);
    json_decref(request);
}

/* False: the connection is over. */
static bool serve_one(http_judge *j, int fd, char *buf) {
    const char *body = read_request(j, fd, buf);
    if (!body) return false;
    bool first = atomic_fetch_add(&j->requests, 1) == 0;
    switch (atomic_load(&j->mode)) {
    case HTTP_ERROR: respond(fd, 200, "", "{\"error\": \"the judge is ill\"}"); break;
    case HTTP_500: respond(fd, 500, "", "no"); break;
    case HTTP_NAN: respond(fd, 200, "", "{\"results\": [NaN]}"); break;
    case HTTP_HTML: respond(fd, 200, "", "<html>welcome</html>"); break;
    case HTTP_NEVER:
        while (!atomic_load(&j->stop)) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            char c;
            if (poll(&p, 1, 20) > 0 && recv(fd, &c, 1, 0) <= 0) return false;
        }
        return false;
    case HTTP_SHORT: judge(fd, body, true); break;
    case HTTP_HANGUP:
        send_line(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
        return false;
    case HTTP_BUSY_ONCE:
        if (first)
            respond(fd, 503, "Retry-After: 1\r\n", "");
        else
            judge(fd, body, false);
        break;
    case HTTP_TEACHES:
        if (first)
            respond(fd, 429, "", "");
        else
            judge(fd, body, false);
        break;
    case HTTP_GATEWAY:
        if (first)
            respond(fd, 502, "", "");
        else
            judge(fd, body, false);
        break;
    case HTTP_LONG: {
        char data[1026];
        memset(data, ' ', sizeof data);
        memcpy(data + 1024, "\r\n", 2);
        send_line(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 4096 && !atomic_load(&j->stop); i++) {
            send_line(fd, "400\r\n");
            send_text(fd, data, sizeof data);
        }
        return false;
    }
    default: judge(fd, body, false);
    }
    return true;
}

typedef struct connection {
    http_judge *judge;
    int fd;
} connection;

static void *converse(void *arg) {
    connection c = *(connection *)arg;
    char *buf = malloc(MAX_REQUEST);
    free(arg);
    while (buf && serve_one(c.judge, c.fd, buf)) continue;
    free(buf);
    close(c.fd);
    atomic_fetch_sub(&c.judge->open, 1);
    return NULL;
}

static void *run(void *arg) {
    http_judge *j = arg;
    while (readable(j, j->listener)) {
        pthread_t thread;
        connection *c = malloc(sizeof *c);
        if (!c) break;
        *c = (connection){j, accept(j->listener, NULL, NULL)};
        atomic_fetch_add(&j->connections, 1);
        atomic_fetch_add(&j->open, 1);
        if (c->fd < 0 || pthread_create(&thread, NULL, converse, c)) {
            atomic_fetch_sub(&j->open, 1);
            free(c);
            continue;
        }
        pthread_detach(thread);
    }
    while (atomic_load(&j->open)) usleep(1000);
    return NULL;
}

bool http_judge_start(http_judge *j, http_mode mode) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    memset(j, 0, sizeof *j);
    atomic_store(&j->mode, (int)mode);
    j->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (j->listener < 0 || bind(j->listener, (struct sockaddr *)&at, sizeof at) ||
        listen(j->listener, 16) || getsockname(j->listener, (struct sockaddr *)&at, &len))
        return false;
    j->port = ntohs(at.sin_port);
    return !pthread_create(&j->thread, NULL, run, j);
}

void http_judge_stop(http_judge *j) {
    atomic_store(&j->stop, true);
    pthread_join(j->thread, NULL);
    close(j->listener);
}
