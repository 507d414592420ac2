/* fork and exec with three pipes, and poll over all of them: a child that writes much before it reads cannot lock us up.
 * Between fork and exec the child only makes system calls; a failing exec reports its errno through a pipe that closes by
 * itself on success. */
#include "env-server/reward/child.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXEC_FAILED = 127, SLICE_MS = 50, GRACE_MS = 500, ERROR_LINE = 2000, READ_SIZE = 65536 };

/* ---- start --------------------------------------------------------------------------------- */

typedef struct pipes {
    int in[2], out[2], err[2], report[2];
} pipes;

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void close_pipes(pipes *p) {
    int *all[] = {p->in, p->out, p->err, p->report};
    for (int i = 0; i < 4; i++) {
        close_fd(&all[i][0]);
        close_fd(&all[i][1]);
    }
}

static tg_status make_pipes(pipes *p, tg_error *err) {
    int *all[] = {p->in, p->out, p->err, p->report};
    memset(p, 0xff, sizeof *p);
    for (int i = 0; i < 4; i++) {
        if (!pipe2(all[i], O_CLOEXEC)) continue;
        tg_status st = tg_fail_errno(err, TG_UNAVAILABLE, "cannot make a pipe");
        close_pipes(p);
        return st;
    }
    return TG_OK;
}

/* In the child: true when exec may follow. */
static bool prepare(const pipes *p, pid_t parent) {
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent) return false;
    if (setpgid(0, 0)) return false;
    for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
    if (sigprocmask(SIG_SETMASK, &none, NULL)) return false;
    return dup2(p->in[0], STDIN_FILENO) >= 0 && dup2(p->out[1], STDOUT_FILENO) >= 0 &&
           dup2(p->err[1], STDERR_FILENO) >= 0;
}

static pid_t launch(const pipes *p, const char *const *argv) {
    pid_t parent = getpid(), child = fork();
    if (child) return child;
    errno = 0;
    if (prepare(p, parent)) execvp(argv[0], (char *const *)(uintptr_t)argv);
    int code = errno;
    if (write(p->report[1], &code, sizeof code) < 0) code = 0; /* nobody is left to tell */
    _exit(EXEC_FAILED);
}

tg_status tg_line_child_start(tg_line_child *c, const char *const *argv, tg_error *err) {
    pipes p;
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGPIPE); /* writing to one that died is an error of this call alone */
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    tg_status st = make_pipes(&p, err);
    if (st != TG_OK) return st;
    pid_t child = launch(&p, argv);
    close_fd(&p.report[1]);
    int code = 0;
    if (child < 0) {
        st = tg_fail_errno(err, TG_UNAVAILABLE, "%s: cannot fork", argv[0]);
    } else if (read(p.report[0], &code, sizeof code) == sizeof code) {
        errno = code;
        st = tg_fail_errno(err, TG_UNAVAILABLE, "%s: cannot be started", argv[0]);
        waitpid(child, NULL, 0);
    } else {
        c->pid = c->group = child;
        c->in = p.in[1], c->out = p.out[0], c->err_fd = p.err[0];
        p.in[1] = p.out[0] = p.err[0] = -1;
        int fds[] = {c->in, c->out, c->err_fd};
        for (int i = 0; i < 3; i++) fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    close_pipes(&p);
    return st;
}

/* ---- end ----------------------------------------------------------------------------------- */

static void log_errors(tg_line_child *c, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') tg_buf_putc(&c->errors, bytes[i]);
        if (bytes[i] != '\n' && c->errors.len < ERROR_LINE) continue;
        if (c->errors.len) tg_log_warn("reward", "%s: %s", c->name, c->errors.data);
        tg_buf_reset(&c->errors);
    }
}

static void read_errors(tg_line_child *c) {
    char bytes[4096];
    for (ssize_t n; c->err_fd >= 0;) {
        n = read(c->err_fd, bytes, sizeof bytes);
        if (n > 0) {
            log_errors(c, bytes, (size_t)n);
            continue;
        }
        if (n == 0) close_fd(&c->err_fd);
        if (n < 0 && errno == EINTR) continue;
        return;
    }
}

static bool reap(tg_line_child *c, int *status) {
    pid_t got = waitpid(c->pid, status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    if (got < 0) *status = 0;
    c->pid = 0;
    return true;
}

void tg_line_child_stop(tg_line_child *c) {
    int status;
    if (!c->group) return;
    close_fd(&c->in); /* the polite way to end */
    for (int ms = 0; c->pid && ms < GRACE_MS && !reap(c, &status); ms += 10) {
        read_errors(c);
        usleep(10000);
    }
    kill(-c->group, SIGKILL); /* and whatever it started */
    while (c->pid && waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
    read_errors(c);
    log_errors(c, "\n", 1);
    close_fd(&c->out);
    close_fd(&c->err_fd);
    tg_buf_fini(&c->errors);
    c->pid = c->group = 0;
}

/* ---- ask ----------------------------------------------------------------------------------- */

/* Its output has ended: how did it end itself? */
static tg_status died(tg_line_child *c, tg_error *err) {
    int status = 0;
    bool gone = false;
    for (int i = 0; i < 50 && !(gone = reap(c, &status)); i++) usleep(2000);
    read_errors(c);
    if (!gone) return tg_fail(err, TG_UNAVAILABLE, "the program closed its output");
    if (WIFSIGNALED(status))
        return tg_fail(err, TG_UNAVAILABLE, "the program died of signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    return tg_fail(err, TG_UNAVAILABLE, "the program ended with exit code %d", WEXITSTATUS(status));
}

typedef struct exchange {
    const char *line;
    size_t len, sent, max_reply;
    tg_buf *reply;
    bool complete, broken; /* a whole line is here; it reads no more */
} exchange;

static void write_some(tg_line_child *c, exchange *x) {
    ssize_t n = write(c->in, x->line + x->sent, x->len - x->sent);
    if (n > 0) x->sent += (size_t)n;
    if (n < 0 && errno != EAGAIN && errno != EINTR) x->broken = true;
}

/* Reads as much as there is. Bytes behind the line's end would be an answer to nothing. */
static tg_status read_some(tg_line_child *c, exchange *x, tg_error *err) {
    char *at = tg_buf_reserve(x->reply, READ_SIZE);
    if (!at) return tg_fail_nomem(err, READ_SIZE);
    ssize_t n = read(c->out, at, READ_SIZE - 1);
    if (n == 0) return died(c, err);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? TG_OK : tg_fail_errno(err, TG_IO, "read failed");
    char *end = memchr(at, '\n', (size_t)n);
    if (end && end != at + n - 1)
        return tg_fail(err, TG_DATA, "the program wrote more than one line for one request");
    x->complete = end != NULL;
    x->reply->len += (size_t)n - (end ? 1 : 0);
    x->reply->data[x->reply->len] = 0;
    if (x->reply->len > x->max_reply)
        return tg_fail(err, TG_DATA, "the answer is longer than %zu bytes", x->max_reply);
    return TG_OK;
}

static int wait_ms(uint64_t deadline_ns) {
    uint64_t now = tg_clock_ns();
    if (now >= deadline_ns) return 0;
    return (int)TG_MIN((deadline_ns - now) / 1000000 + 1, (uint64_t)SLICE_MS);
}

static tg_status converse(tg_line_child *c, exchange *x, uint64_t deadline_ns, tg_error *err) {
    while (!x->complete) {
        int slice = wait_ms(deadline_ns);
        if (!slice) return tg_fail(err, TG_TIMEOUT, "the program did not answer in time");
        if (c->stop && atomic_load(c->stop))
            return tg_fail(err, TG_UNAVAILABLE, "the reward is shutting down");
        bool writing = x->sent < x->len && !x->broken;
        struct pollfd p[] = {{.fd = c->out, .events = POLLIN},
                             {.fd = c->err_fd, .events = POLLIN},
                             {.fd = writing ? c->in : -1, .events = POLLOUT}};
        if (poll(p, 3, slice) < 0 && errno != EINTR)
            return tg_fail_errno(err, TG_IO, "poll failed");
        if (p[1].revents) read_errors(c);
        if (p[2].revents) write_some(c, x);
        if (!p[0].revents) continue;
        tg_status st = read_some(c, x, err);
        if (st != TG_OK) return st;
    }
    return x->sent == x->len ? TG_OK
                             : tg_fail(err, TG_DATA, "the program answered before it was asked");
}

tg_status tg_line_child_ask(tg_line_child *c, const char *line, size_t len, uint64_t deadline_ns,
                            size_t max_reply, tg_buf *reply, bool *written, tg_error *err) {
    exchange x = {.line = line, .len = len, .max_reply = max_reply, .reply = reply};
    tg_buf_reset(reply);
    tg_status st = converse(c, &x, deadline_ns, err);
    *written = x.sent > 0;
    return st;
}
