/* Bytes of any kind on a stream that should speak ZeroMQ's protocol: first the pure readers on memory of exactly that length, then a
 * listening socket that gets the same bytes in pieces. Whatever is taken lies within the bytes; what libzmq's peers would
 * find whole does not depend on where the stream was cut. */
#include "common/base/check.h"
#include "common/net/ipc.h"
#include "common/net/zmtp.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 4096 };

static void read_all(const uint8_t *bytes, size_t size) {
    uint8_t answer[TG_ZMTP_READY];
    tg_zmtp_check_greeting(bytes, size);
    tg_zmtp_is_ready(bytes, size, size & 1);
    TG_ASSERT(tg_zmtp_put_answer(answer, bytes, size) <= sizeof answer);
    for (size_t at = 0; at < size;) {
        tg_zmtp_frame f;
        if (tg_zmtp_read_frame(bytes + at, size - at, MAX, &f) != TG_ZMTP_OK) break;
        TG_ASSERT(f.total <= size - at && f.len < f.total && f.len <= MAX);
        TG_ASSERT(f.body + f.len == bytes + at + f.total);
        at += f.total;
    }
}

typedef struct heard {
    size_t messages, bytes;
} heard;

static void on_message(void *arg, uint64_t peer, int fd, const void *bytes, size_t len,
                       bool whole) {
    heard *h = arg;
    (void)peer, (void)fd, (void)bytes;
    TG_ASSERT(len <= MAX && (whole || len == 0));
    h->messages++;
    h->bytes += len;
}

static void on_accept(void *arg, int fd) {
    (void)arg, (void)fd;
}

static void on_connect(void *arg) {
    (void)arg;
}

static void on_end(void *arg, uint64_t peer, int fd, bool ready) {
    (void)arg, (void)peer, (void)fd, (void)ready;
}

/* In pieces of `piece` bytes, behind a good handshake if asked for. */
static heard listen_to(const uint8_t *bytes, size_t size, size_t piece, bool shake) {
    static char path[64];
    heard h = {0};
    tg_ipc_opts o = {.listen = true,
                     .max_message = MAX,
                     .handshake_ms = 10000,
                     .on_message = on_message,
                     .on_accept = on_accept,
                     .on_connect = on_connect,
                     .on_end = on_end,
                     .arg = &h};
    tg_ipc *ipc;
    snprintf(path, sizeof path, "/tmp/fuzz-zmtp-%ld", (long)getpid());
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path, path, strlen(path));
    if (tg_ipc_open(&ipc, path, &o, NULL) != TG_OK) return h;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0) {
        uint8_t head[TG_ZMTP_GREETING + TG_ZMTP_READY];
        tg_zmtp_put_greeting(head);
        size_t n = TG_ZMTP_GREETING + tg_zmtp_put_ready(head + TG_ZMTP_GREETING, false);
        if (shake) send(fd, head, n, MSG_NOSIGNAL);
        for (size_t at = 0; at < size; at += piece) {
            send(fd, bytes + at, TG_MIN(piece, size - at), MSG_NOSIGNAL | MSG_DONTWAIT);
            tg_ipc_drain(ipc, 256);
        }
        tg_ipc_drain(ipc, 256);
    }
    close(fd);
    tg_ipc_drain(ipc, 256);
    tg_ipc_destroy(&ipc);
    return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *bytes = calloc(size ? size : 1, 1); /* exactly as long, for the sanitizer */
    if (!bytes) return 0;
    if (size) memcpy(bytes, data, size);
    read_all(bytes, size);
    if (size <= 4096) {
        heard whole = listen_to(bytes, size, size ? size : 1, true);
        heard cut = listen_to(bytes, size, size / 7 + 1, true);
        TG_ASSERT(whole.messages == cut.messages && whole.bytes == cut.bytes);
        listen_to(bytes, size, size / 3 + 1, false);
    }
    free(bytes);
    return 0;
}
