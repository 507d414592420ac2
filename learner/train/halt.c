/* One thread waits for signals, the parent's end of a pipe and the order to leave; the rest of the
 * program only reads a flag. */
#include "learner/train/halt.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { PARENT_GRACE_MS = 2000, EXIT_INTERRUPTED = 130 };

struct tg_halt {
    _Atomic(const char *) reason; /* NULL: go on */
    tg_halt_die *die;
    int signals, leave, parent; /* file descriptors */
    pthread_t thread;
};

static const char *signal_name(int number) {
    return number == SIGINT ? "SIGINT" : "SIGTERM";
}

/* Returns when told to leave. */
static void *watch(void *arg) {
    tg_halt *s = arg;
    bool orphan = false;
    for (;;) {
        struct pollfd fds[3] = {
            {s->signals, POLLIN, 0}, {s->leave, POLLIN, 0}, {orphan ? -1 : s->parent, POLLIN, 0}};
        int n = poll(fds, 3, orphan ? PARENT_GRACE_MS : -1);
        if (n < 0 && errno != EINTR) return NULL;
        if (n == 0 && orphan) s->die(EXIT_INTERRUPTED);
        if (n <= 0) continue;
        if (fds[1].revents) return NULL;
        struct signalfd_siginfo info;
        if (fds[0].revents && read(s->signals, &info, sizeof info) == sizeof info) {
            if (atomic_load(&s->reason)) s->die(EXIT_INTERRUPTED);
            atomic_store(&s->reason, signal_name((int)info.ssi_signo));
        }
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

tg_status tg_halt_create(tg_halt **out, int parent_fd, tg_halt_die *die, tg_error *err) {
    tg_halt *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    *s = (tg_halt){.die = die, .parent = parent_fd, .signals = -1, .leave = -1};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC);
    s->leave = eventfd(0, EFD_CLOEXEC);
    if (s->signals < 0 || s->leave < 0 || pthread_create(&s->thread, NULL, watch, s) != 0) {
        tg_status st = tg_fail_errno(err, TG_IO, "cannot watch for signals");
        close_fd(s->signals);
        close_fd(s->leave);
        tg_free(s);
        return st;
    }
    *out = s;
    return TG_OK;
}

void tg_halt_destroy(tg_halt **s) {
    if (!*s) return;
    uint64_t one = 1;
    ssize_t written;
    do written = write((*s)->leave, &one, sizeof one);
    while (written < 0 && errno == EINTR);
    pthread_join((*s)->thread, NULL);
    close_fd((*s)->signals);
    close_fd((*s)->leave);
    tg_free(*s);
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
