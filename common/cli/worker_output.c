/* Workers' lines. A full disk must not stop a run: a line that cannot be logged is dropped. */
#include "common/cli/worker_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void tg_worker_output_init(tg_worker_output *o, int index, int fd, int log) {
    o->fd = fd;
    o->log = log;
    o->index = index;
    o->len = 0;
}

static void put_line(tg_worker_output *o) {
    char text[sizeof o->line + 32];
    int n = snprintf(text, sizeof text, "worker %d: %.*s\n", o->index, (int)o->len, o->line);
    o->line[o->len < sizeof o->line ? o->len : sizeof o->line - 1] = '\0';
    bool is_error = strstr(o->line, "[ERROR]") || !strncmp(o->line, "textgen-env:", 12);
    o->len = 0;
    if (write(o->log, text, (size_t)n) < 0) return;
    if (is_error) fwrite(text, 1, (size_t)n, stderr);
}

void tg_worker_output_read(tg_worker_output *o) {
    char bytes[4096];
    while (o->fd >= 0) {
        ssize_t n = read(o->fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) {
            close(o->fd);
            o->fd = -1;
        }
        if (n <= 0) break;
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] != '\n') o->line[o->len++] = bytes[i];
            if (bytes[i] == '\n' || o->len == sizeof o->line - 1) put_line(o);
        }
    }
}

void tg_worker_output_finish(tg_worker_output *o) {
    tg_worker_output_read(o);
    if (o->len) put_line(o);
    if (o->fd >= 0) close(o->fd);
    o->fd = -1;
}
