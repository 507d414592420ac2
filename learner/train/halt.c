/* One thread waits for signals, the parent's end of a pipe and the order to leave; the rest of the
 * program only reads a flag.
 *
 * Libraries start threads of their own before main (BLAS does), so signals cannot simply be blocked
 * and read from a descriptor: a handler, on whatever thread, passes the number on through a pipe. */
#include "learner/train/halt.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PARENT_GRACE_MS = 2000, EXIT_INTERRUPTED = 130 };

struct tg_halt {
    _Atomic(const char *) reason; /* NULL: go on */
    tg_halt_die *die;
    int signals[2], leave, parent; /* file descriptors */
    struct sigaction before[2];    /* of SIGINT and SIGTERM */
    pthread_t thread;
};

static const int watched[2] = {SIGINT, SIGTERM};

/* A handler has no argument: the pipe's end must be static. One tg_halt at a time. */
static volatile sig_atomic_t handler_fd = -1;

static void on_signal(int number) {
    int saved = errno;
    unsigned char byte = (unsigned char)number;
    if (handler_fd >= 0 && write(handler_fd, &byte, 1) < 0) { /* full: one is enough */
    }
    errno = saved;
}

static const char *signal_name(int number) {
    return number == SIGINT ? "SIGINT" : "SIGTERM";
}

/* *asked: when the first signal came; 0: none has. */
static void take_signal(tg_halt *s, int number, uint64_t *asked) {
    const uint64_t now = tg_clock_ms();
    if (!atomic_load(&s->reason)) {
        *asked = now;
        atomic_store(&s->reason, signal_name(number));
    } else if (now - *asked >= TG_ONE_STOP_MS) {
        s->die(EXIT_INTERRUPTED);
    }
}

/* Returns when told to leave. */
static void *watch(void *arg) {
    tg_halt *s = arg;
    bool orphan = false;
    uint64_t asked = 0;
    for (;;) {
        struct pollfd fds[3] = {{s->signals[0], POLLIN, 0},
                                {s->leave, POLLIN, 0},
                                {orphan ? -1 : s->parent, POLLIN, 0}};
        int n = poll(fds, 3, orphan ? PARENT_GRACE_MS : -1);
        if (n < 0 && errno != EINTR) return NULL;
        if (n == 0 && orphan) s->die(EXIT_INTERRUPTED);
        if (n <= 0) continue;
        if (fds[1].revents) return NULL;
        unsigned char number;
        while (fds[0].revents && read(s->signals[0], &number, 1) == 1)
            take_signal(s, number, &asked);
        char byte;
        if (fds[2].revents && read(s->parent, &byte, 1) <= 0) {
            orphan = true;
            atomic_store(&s->reason, "the parent process is gone");
        }
    }
}

static void close_fd(int fd) {
    if (fd >= 0) close(fd);
}

static void close_all(tg_halt *s) {
    close_fd(s->signals[0]);
    close_fd(s->signals[1]);
    close_fd(s->leave);
    tg_free(s);
}

tg_status tg_halt_create(tg_halt **out, int parent_fd, tg_halt_die *die, tg_error *err) {
    tg_halt *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    *s = (tg_halt){.die = die, .parent = parent_fd, .signals = {-1, -1}, .leave = -1};
    TG_ASSERT(handler_fd < 0);
    if (pipe2(s->signals, O_CLOEXEC | O_NONBLOCK) != 0 ||
        (s->leave = eventfd(0, EFD_CLOEXEC)) < 0 ||
        pthread_create(&s->thread, NULL, watch, s) != 0) {
        tg_status st = tg_fail_errno(err, TG_IO, "cannot watch for signals");
        close_all(s);
        return st;
    }
    handler_fd = s->signals[1];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < 2; i++) sigaction(watched[i], &action, &s->before[i]);
    *out = s;
    return TG_OK;
}

void tg_halt_destroy(tg_halt **s) {
    if (!*s) return;
    for (int i = 0; i < 2; i++) sigaction(watched[i], &(*s)->before[i], NULL);
    handler_fd = -1;
    uint64_t one = 1;
    ssize_t written;
    do written = write((*s)->leave, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    pthread_join((*s)->thread, NULL);
    close_all(*s);
    *s = NULL;
}

bool tg_halt_requested(const tg_halt *s) {
    return s && atomic_load(&s->reason) != NULL;
}

const char *tg_halt_reason(const tg_halt *s) {
    const char *reason = s ? atomic_load(&s->reason) : NULL;
    return reason ? reason : "";
}

void tg_halt_request(tg_halt *s, const char *static_reason) {
    atomic_store(&s->reason, static_reason);
}
