/* One connection: handshake, frames in, frames out.
 *
 * Bytes are read into a buffer that all connections share and handled there; only the beginning of a frame whose rest has not arrived
 * is kept, and grows with what arrives, never with what is announced. */
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/ipc_internal.h"
#include "common/net/zmtp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { KEEP = 1 << 20, MAX_ANSWERS = 4096 }; /* bytes of PONGs that may wait */

/* ---- out ------------------------------------------------------------------------------------ */

/* Its end is then found by reading, where it can be handled. */
static void break_off(tg_ipc_conn *c) {
    c->broken = true;
    shutdown(c->fd, SHUT_RDWR);
}

static size_t waiting(const tg_ipc_conn *c) {
    return c->out.len - c->out_at;
}

/* The bytes of the vectors from `from` on wait for room. */
static bool keep_rest(tg_ipc_conn *c, const struct iovec *v, int n, size_t from) {
    for (int i = 0; i < n; i++) {
        size_t skip = TG_MIN(from, v[i].iov_len);
        tg_buf_append(&c->out, (const char *)v[i].iov_base + skip, v[i].iov_len - skip);
        from -= skip;
    }
    if (c->out.failed) break_off(c);
    tg_ipc_watch(c, true);
    return !c->out.failed;
}

static tg_ipc_sent write_all(tg_ipc_conn *c, struct iovec *v, int n, size_t total) {
    struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
    ssize_t done;
    do done = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    if (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
        break_off(c);
        return TG_IPC_GONE;
    }
    if (done < 0) {
        tg_ipc_watch(c, true);
        return TG_IPC_BLOCKED;
    }
    if ((size_t)done == total) return TG_IPC_SENT;
    return keep_rest(c, v, n, (size_t)done) ? TG_IPC_SENT : TG_IPC_GONE;
}

tg_ipc_sent tg_ipc_write(tg_ipc_conn *c, const void *bytes, size_t len) {
    if (c->broken) return TG_IPC_GONE;
    if (c->stage != TG_IPC_READY || waiting(c)) return TG_IPC_BLOCKED;
    uint8_t head[TG_ZMTP_HEAD];
    size_t n = tg_zmtp_put_head(head, 0, len);
    struct iovec v[2] = {{head, n}, {(void *)bytes, len}};
    return write_all(c, v, 2, n + len);
}

/* Small, and sent behind whatever waits. */
static void write_control(tg_ipc_conn *c, uint8_t *bytes, size_t len) {
    struct iovec v = {bytes, len};
    if (c->broken || len == 0) return;
    if (!waiting(c) && write_all(c, &v, 1, len) != TG_IPC_BLOCKED) return;
    if (waiting(c) < KEEP + MAX_ANSWERS) keep_rest(c, &v, 1, 0);
}

void tg_ipc_greet(tg_ipc_conn *c) {
    uint8_t greeting[TG_ZMTP_GREETING];
    tg_zmtp_put_greeting(greeting);
    write_control(c, greeting, sizeof greeting);
}

void tg_ipc_writable(tg_ipc_conn *c) {
    while (waiting(c)) {
        ssize_t n = send(c->fd, c->out.data + c->out_at, waiting(c), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) return;
        if (n < 0) {
            break_off(c);
            return;
        }
        c->out_at += (size_t)n;
    }
    c->out_at = 0;
    if (c->out.cap > TG_IPC_READ) tg_buf_fini(&c->out);
    tg_buf_reset(&c->out);
    tg_ipc_watch(c, false);
}

/* ---- in ------------------------------------------------------------------------------------- */

static void handle_data(tg_ipc_conn *c, const tg_zmtp_frame *f) {
    const tg_ipc_opts *o = &c->ipc->opts;
    bool more = f->flags & TG_ZMTP_MORE, whole = !more && !c->parts;
    c->parts = more;
    if (more) return;
    c->ipc->budget--;
    o->on_message(o->arg, o->listen ? c->id : 0, c->fd, whole ? f->body : NULL, whole ? f->len : 0,
                  whole);
}

/* One frame of a connection whose greeting is through; false: it breaks the protocol. */
static bool handle_frame(tg_ipc_conn *c, const tg_zmtp_frame *f) {
    uint8_t answer[TG_ZMTP_READY];
    bool command = f->flags & TG_ZMTP_COMMAND;
    if (c->stage == TG_IPC_HANDSHAKE) {
        if (!command || !tg_zmtp_is_ready(f->body, f->len, c->ipc->opts.listen)) return false;
        tg_ipc_ready(c);
    } else if (command) {
        write_control(c, answer, tg_zmtp_put_answer(answer, f->body, f->len));
    } else {
        handle_data(c, f);
    }
    return true;
}

/* One greeting or frame; the bytes it took. TG_ZMTP_PART: it is not whole yet. */
static tg_zmtp_result handle_one(tg_ipc_conn *c, const uint8_t *bytes, size_t n, size_t *used) {
    if (c->stage == TG_IPC_GREETING) {
        uint8_t ready[TG_ZMTP_READY];
        tg_zmtp_result r = tg_zmtp_check_greeting(bytes, n);
        if (r != TG_ZMTP_OK) return r;
        *used = TG_ZMTP_GREETING;
        c->stage = TG_IPC_HANDSHAKE;
        write_control(c, ready, tg_zmtp_put_ready(ready, c->ipc->opts.listen));
        return r;
    }
    tg_zmtp_frame f;
    tg_zmtp_result r = tg_zmtp_read_frame(bytes, n, c->ipc->opts.max_message, &f);
    if (r != TG_ZMTP_OK) return r;
    *used = f.total;
    return handle_frame(c, &f) ? TG_ZMTP_OK : TG_ZMTP_BAD;
}

/* Handles what is whole and returns how many bytes that was; *bad: the rest cannot become anything. */
static size_t handle_all(tg_ipc_conn *c, const uint8_t *bytes, size_t n, bool *bad) {
    size_t at = 0;
    while (at < n && !c->ipc->shut) {
        size_t used = 0;
        tg_zmtp_result r = handle_one(c, bytes + at, n - at, &used);
        *bad = r == TG_ZMTP_BAD;
        if (r != TG_ZMTP_OK) break;
        at += used;
    }
    return at;
}

static void give_back(tg_ipc_conn *c) {
    tg_ipc *ipc = c->ipc;
    tg_buf_reset(&c->in);
    if (!ipc->spare.data && c->in.cap <= KEEP)
        ipc->spare = c->in;
    else
        tg_buf_fini(&c->in);
    c->in = (tg_buf){0};
}

/* False: out of memory. */
static bool keep_beginning(tg_ipc_conn *c, const uint8_t *bytes, size_t n) {
    if (n == 0) return true;
    c->in = c->ipc->spare;
    c->ipc->spare = (tg_buf){0};
    tg_buf_append(&c->in, bytes, n);
    return !c->in.failed;
}

/* What is in c->in now; false: the connection is to be ended. */
static bool handle_kept(tg_ipc_conn *c) {
    bool bad = false;
    size_t n = handle_all(c, (const uint8_t *)c->in.data, c->in.len, &bad);
    if (c->ipc->shut) return true;
    memmove(c->in.data, c->in.data + n, c->in.len - n);
    c->in.len -= n;
    if (c->in.len == 0) give_back(c);
    return !bad;
}

static bool handle_fresh(tg_ipc_conn *c, size_t n) {
    bool bad = false;
    size_t used = handle_all(c, c->ipc->room, n, &bad);
    if (c->ipc->shut) return true;
    return !bad && keep_beginning(c, c->ipc->room + used, n - used);
}

void tg_ipc_readable(tg_ipc_conn *c) {
    bool kept = c->in.len > 0;
    char *to = kept ? tg_buf_reserve(&c->in, TG_IPC_READ) : (char *)c->ipc->room;
    bool full = kept && !to; /* out of memory */
    ssize_t n = full ? 0 : recv(c->fd, to, TG_IPC_READ, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EWOULDBLOCK)) return;
    bool ok = n > 0;
    if (ok && kept) c->in.len += (size_t)n;
    if (ok) ok = kept ? handle_kept(c) : handle_fresh(c, (size_t)n);
    if (!ok && !c->ipc->shut) tg_ipc_end(c);
}
