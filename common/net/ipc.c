/* An address of the file system and its connections, behind one epoll descriptor that the owner's loop watches.
 *
 * Invariants: connections end in tg_ipc_drain only, so nobody else holds one across an end; after tg_ipc_shut no descriptor is open and
 * no callback comes, but the memory stays for those who are still on the way out. */
#include "common/net/ipc.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/ipc_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG =
        4096, /* connections that may arrive at once, e.g. ten thousand clients of a broker that restarts */
    DIAL_MS = 100, /* doubling to DIAL_MAX_MS */
    DIAL_MAX_MS = 1000,
    EVENTS = 64
};

/* What an event is about, besides the ids of connections. */
#define ABOUT_LISTENER UINT64_MAX
#define ABOUT_TIMER (UINT64_MAX - 1)

static bool watch(const tg_ipc *ipc, int fd, uint32_t events, uint64_t about, int op) {
    struct epoll_event e = {.events = events, .data.u64 = about};
    return epoll_ctl(ipc->epoll, op, fd, &e) == 0;
}

void tg_ipc_watch(tg_ipc_conn *c, bool write) {
    if (c->waits == write) return;
    c->waits = write;
    watch(c->ipc, c->fd, write ? EPOLLIN | EPOLLOUT : EPOLLIN, c->id, EPOLL_CTL_MOD);
}

/* Once, after so many ms. */
static void set_timer(const tg_ipc *ipc, int ms) {
    struct itimerspec t = {.it_value = {ms / 1000, (long)(ms % 1000) * 1000000 + 1}};
    timerfd_settime(ipc->timer, 0, &t, NULL);
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- connections ---------------------------------------------------------------------------- */

static bool grow(tg_ipc *ipc) {
    size_t cap = ipc->cap_conns ? 2 * ipc->cap_conns : 16;
    tg_ipc_conn **conns = tg_realloc_array(ipc->conns, cap, sizeof *conns);
    if (!conns) return false;
    ipc->conns = conns;
    ipc->cap_conns = cap;
    return true;
}

static tg_ipc_conn *find(const tg_ipc *ipc, uint64_t id) {
    size_t place = ipc->opts.listen ? (uint32_t)id : 0;
    tg_ipc_conn *c = place < ipc->n_conns ? ipc->conns[place] : NULL;
    return c && (c->id == id || !ipc->opts.listen) ? c : NULL;
}

/* Takes the descriptor. */
static tg_ipc_conn *add(tg_ipc *ipc, int fd) {
    size_t place = ipc->first_free;
    while (place < ipc->n_conns && ipc->conns[place]) place++;
    bool room = place < ipc->cap_conns || grow(ipc);
    tg_ipc_conn *c = room ? tg_alloc(sizeof *c) : NULL;
    uint64_t id = (uint64_t)++ipc->serial << 32 | (uint32_t)place;
    if (!c || !watch(ipc, fd, EPOLLIN, id, EPOLL_CTL_ADD)) {
        tg_log_warn("net", "ipc://%s: no memory for a connection", ipc->path);
        tg_free(c);
        close(fd);
        return NULL;
    }
    c->ipc = ipc, c->fd = fd, c->id = id;
    c->since_ms = tg_clock_ms();
    if (ipc->unready++ == 0) set_timer(ipc, ipc->opts.handshake_ms);
    if (place == ipc->n_conns) ipc->n_conns++;
    ipc->conns[place] = c;
    ipc->first_free = place + 1;
    return c;
}

static void release(tg_ipc_conn *c) {
    tg_buf_fini(&c->in);
    tg_buf_fini(&c->out);
    tg_free(c);
}

static void dial_later(tg_ipc *ipc) {
    ipc->dial_ms = tg_clock_ms() + (uint64_t)ipc->backoff_ms;
    set_timer(ipc, ipc->backoff_ms);
    ipc->backoff_ms = TG_MIN(2 * ipc->backoff_ms, DIAL_MAX_MS);
}

void tg_ipc_end(tg_ipc_conn *c) {
    tg_ipc *ipc = c->ipc;
    const tg_ipc_opts *o = &ipc->opts;
    size_t place = (uint32_t)c->id;
    ipc->conns[place] = NULL;
    ipc->first_free = TG_MIN(ipc->first_free, place);
    if (c->stage != TG_IPC_READY) ipc->unready--;
    if (!o->listen) dial_later(ipc);
    o->on_end(o->arg, o->listen ? c->id : 0, c->fd, c->stage == TG_IPC_READY);
    close_fd(&c->fd);
    release(c);
}

void tg_ipc_ready(tg_ipc_conn *c) {
    tg_ipc *ipc = c->ipc;
    c->stage = TG_IPC_READY;
    ipc->unready--;
    ipc->backoff_ms = DIAL_MS;
    if (!ipc->opts.listen) ipc->opts.on_connect(ipc->opts.arg);
}

/* ---- listening ------------------------------------------------------------------------------ */

/* Without a descriptor left, the connection is taken with the one in reserve and closed, so that who dialled knows. */
static void refuse_one(tg_ipc *ipc) {
    uint64_t n = ++ipc->refused;
    if ((n & (n - 1)) == 0)
        tg_log_warn("net",
                    "ipc://%s: no file descriptors left, connections are refused (%llu so far)",
                    ipc->path, (unsigned long long)n);
    close_fd(&ipc->reserve);
    int fd = accept4(ipc->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) close(fd);
    ipc->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_all(tg_ipc *ipc) {
    for (int i = 0; i < EVENTS && !ipc->shut; i++) {
        int fd = accept4(ipc->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) refuse_one(ipc);
            return;
        }
        tg_ipc_conn *c = add(ipc, fd);
        if (!c) continue;
        ipc->opts.on_accept(ipc->opts.arg, fd);
        if (!ipc->shut) tg_ipc_greet(c);
    }
}

static void fill_address(struct sockaddr_un *a, const char *path) {
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path, path, strlen(path)); /* tg_address_check: it fits */
}

/* Connecting to a socket file needs write permission: 0600 keeps other users out whatever the folder's mode. The file of a server
 * that was killed is in the way, so the newest server has the address. */
static tg_status start_listening(tg_ipc *ipc, tg_error *err) {
    struct sockaddr_un a;
    struct stat made;
    fill_address(&a, ipc->path);
    ipc->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ipc->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (stat(ipc->path, &made) == 0 && S_ISSOCK(made.st_mode)) unlink(ipc->path);
    mode_t before = umask(0177);
    bool ok = ipc->listener >= 0 && bind(ipc->listener, (struct sockaddr *)&a, sizeof a) == 0;
    int why = errno;
    umask(before);
    if (ok && stat(ipc->path, &made) == 0) ipc->dev = made.st_dev, ipc->ino = made.st_ino;
    if (ok) {
        ok = listen(ipc->listener, BACKLOG) == 0 &&
             watch(ipc, ipc->listener, EPOLLIN, ABOUT_LISTENER, EPOLL_CTL_ADD);
        why = errno;
    }
    if (ok) return TG_OK;
    return tg_fail(err, TG_UNAVAILABLE, "ipc://%s: cannot listen: %s", ipc->path, strerror(why));
}

/* ---- dialling ------------------------------------------------------------------------------- */

static void dial(tg_ipc *ipc) {
    struct sockaddr_un a;
    fill_address(&a, ipc->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0) close_fd(&fd);
    tg_ipc_conn *c = fd >= 0 ? add(ipc, fd) : NULL;
    if (c)
        tg_ipc_greet(c);
    else
        dial_later(ipc);
}

/* ---- the timer ------------------------------------------------------------------------------ */

/* Those that did not become connections in time. */
static void end_unready(tg_ipc *ipc, uint64_t now) {
    uint64_t limit = (uint64_t)ipc->opts.handshake_ms;
    for (size_t i = 0; i < ipc->n_conns && ipc->unready && !ipc->shut; i++) {
        tg_ipc_conn *c = ipc->conns[i];
        if (c && c->stage != TG_IPC_READY && now - c->since_ms >= limit) tg_ipc_end(c);
    }
}

static void on_timer(tg_ipc *ipc) {
    uint64_t ticks, now = tg_clock_ms();
    ssize_t n = read(ipc->timer, &ticks, sizeof ticks);
    (void)n; /* only to make it quiet */
    end_unready(ipc, now);
    if (ipc->shut) return;
    bool dials = !ipc->opts.listen && !find(ipc, 0);
    if (dials && now >= ipc->dial_ms)
        dial(ipc);
    else if (dials)
        set_timer(ipc, (int)(ipc->dial_ms - now));
    else if (ipc->unready)
        set_timer(ipc, TG_MAX(ipc->opts.handshake_ms / 8, 1));
}

/* ---- what the owner calls ------------------------------------------------------------------- */

static void handle_event(tg_ipc *ipc, const struct epoll_event *e) {
    if (e->data.u64 == ABOUT_LISTENER) {
        accept_all(ipc);
        return;
    }
    if (e->data.u64 == ABOUT_TIMER) {
        on_timer(ipc);
        return;
    }
    size_t place = (uint32_t)e->data.u64;
    tg_ipc_conn *c = place < ipc->n_conns ? ipc->conns[place] : NULL;
    if (!c || c->id != e->data.u64) return; /* ended meanwhile */
    if (e->events & EPOLLOUT) tg_ipc_writable(c);
    if (e->events & ~(uint32_t)EPOLLOUT) tg_ipc_readable(c);
}

void tg_ipc_drain(tg_ipc *ipc, int budget) {
    struct epoll_event events[EVENTS];
    int n = EVENTS;
    ipc->budget = budget;
    while (n == EVENTS && ipc->budget > 0 && !ipc->shut) {
        n = epoll_wait(ipc->epoll, events, EVENTS, 0);
        for (int i = 0; i < n && !ipc->shut; i++) handle_event(ipc, &events[i]);
    }
}

tg_ipc_sent tg_ipc_send(tg_ipc *ipc, uint64_t peer, const void *bytes, size_t len) {
    tg_ipc_conn *c = find(ipc, peer);
    if (!c) return ipc->opts.listen ? TG_IPC_GONE : TG_IPC_BLOCKED;
    return tg_ipc_write(c, bytes, len);
}

int tg_ipc_fd(const tg_ipc *ipc) {
    return ipc->epoll;
}

static tg_status start(tg_ipc *ipc, tg_error *err) {
    ipc->epoll = epoll_create1(EPOLL_CLOEXEC);
    ipc->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (ipc->epoll < 0 || ipc->timer < 0 ||
        !watch(ipc, ipc->timer, EPOLLIN, ABOUT_TIMER, EPOLL_CTL_ADD))
        return tg_fail_errno(err, TG_UNAVAILABLE, "ipc://%s: no descriptors for it", ipc->path);
    if (ipc->opts.listen) return start_listening(ipc, err);
    dial(ipc);
    return TG_OK;
}

tg_status tg_ipc_open(tg_ipc **out, const char *path, const tg_ipc_opts *opts, tg_error *err) {
    *out = NULL;
    tg_ipc *ipc = tg_alloc(sizeof *ipc);
    if (!ipc) return tg_fail_nomem(err, sizeof *ipc);
    ipc->opts = *opts;
    ipc->epoll = ipc->listener = ipc->timer = ipc->reserve = -1;
    ipc->backoff_ms = DIAL_MS;
    ipc->path = tg_strdup(path);
    tg_status st = ipc->path ? start(ipc, err) : tg_fail_nomem(err, strlen(path));
    if (st == TG_OK)
        *out = ipc;
    else
        tg_ipc_destroy(&ipc);
    return st;
}

void tg_ipc_shut(tg_ipc *ipc) {
    struct stat now;
    if (ipc->shut) return;
    ipc->shut = true;
    if (ipc->listener >= 0 && ipc->ino && stat(ipc->path, &now) == 0 && now.st_ino == ipc->ino &&
        now.st_dev == ipc->dev)
        unlink(ipc->path); /* else it is another server's by now */
    for (size_t i = 0; i < ipc->n_conns; i++)
        if (ipc->conns[i]) close_fd(&ipc->conns[i]->fd);
    close_fd(&ipc->listener);
    close_fd(&ipc->timer);
    close_fd(&ipc->reserve);
    close_fd(&ipc->epoll);
}

void tg_ipc_destroy(tg_ipc **out) {
    tg_ipc *ipc = *out;
    if (!ipc) return;
    *out = NULL;
    tg_ipc_shut(ipc);
    for (size_t i = 0; i < ipc->n_conns; i++)
        if (ipc->conns[i]) release(ipc->conns[i]);
    tg_buf_fini(&ipc->spare);
    tg_free(ipc->conns);
    tg_free(ipc->path);
    tg_free(ipc);
}
