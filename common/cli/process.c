/* fork and exec. Between the two the child only makes system calls; a failing exec reports its errno through a pipe that
 * closes by itself on success. Runs on the main thread: PR_SET_PDEATHSIG is tied to the thread that forked. */
#include "common/cli/process.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPTURE_MAX = 8 << 20, EXEC_FAILED = 127 };

tg_status tg_sibling_path(const char *name, char **path, tg_error *err) {
    const char *folder = getenv("TEXTGEN_LIBEXEC");
    char exe[4096];
    *path = NULL;
    if (!folder || !*folder) {
        ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
        if (n <= 0) return tg_fail_errno(err, TG_UNAVAILABLE, "/proc/self/exe: cannot be read");
        exe[n] = '\0';
        char *slash = strrchr(exe, '/');
        if (slash) *slash = '\0';
        folder = exe;
    }
    *path = tg_path_join(folder, name);
    if (!*path) return tg_fail_nomem(err, strlen(name));
    if (!access(*path, X_OK)) return TG_OK;
    tg_status st =
        tg_fail(err, TG_UNAVAILABLE,
                "%s is not there: the programs must lie in one folder (make builds them)", *path);
    tg_free(*path);
    *path = NULL;
    return st;
}

/* In the child: true when everything is set and exec may follow. */
static bool prepare_child(pid_t parent, const tg_child_io *io) {
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        return false; /* the parent may be gone already */
    if (io->own_group && setpgid(0, 0)) return false;
    for (int s = 1; s < 32; s++) signal(s, SIG_DFL);
    if (sigprocmask(SIG_SETMASK, &none, NULL)) return false;
    if (io->out >= 0 && dup2(io->out, STDOUT_FILENO) < 0) return false;
    if (io->err >= 0 && dup2(io->err, STDERR_FILENO) < 0) return false;
    if (io->parent_fd < 0) return true;
    char number[16];
    int fd = dup(io->parent_fd); /* a copy without close-on-exec */
    snprintf(number, sizeof number, "%d", fd);
    return fd >= 0 && !setenv("TEXTGEN_PARENT_FD", number, 1);
}

tg_status tg_child_start(pid_t *pid, const char *const *argv, const tg_child_io *io,
                         tg_error *err) {
    int report[2];
    if (pipe2(report, O_CLOEXEC)) return tg_fail_errno(err, TG_UNAVAILABLE, "cannot make a pipe");
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        errno = 0;
        if (prepare_child(parent, io)) execv(argv[0], (char *const *)(uintptr_t)argv);
        int code = errno;
        if (write(report[1], &code, sizeof code) < 0) code = 0; /* nobody is left to tell */
        _exit(EXEC_FAILED);
    }
    close(report[1]);
    tg_status st = TG_OK;
    int code = 0;
    if (child < 0) {
        st = tg_fail_errno(err, TG_UNAVAILABLE, "%s: cannot fork", argv[0]);
    } else if (read(report[0], &code, sizeof code) == sizeof code) {
        errno = code;
        st = tg_fail_errno(err, TG_UNAVAILABLE, "%s: cannot be started", argv[0]);
        waitpid(child, NULL, 0);
    }
    close(report[0]);
    *pid = st == TG_OK ? child : -1;
    return st;
}

void tg_child_fate(int wait_status, char *out, size_t size) {
    if (WIFSIGNALED(wait_status)) {
        int s = WTERMSIG(wait_status);
        snprintf(out, size, "signal %d (%s)", s, strsignal(s));
    } else {
        snprintf(out, size, "exit code %d", WEXITSTATUS(wait_status));
    }
}

int tg_child_code(int wait_status) {
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Reads both pipes until they end. */
static tg_status drain(int fds[2], tg_buf *bufs[2], tg_error *err) {
    struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR) return tg_fail_errno(err, TG_IO, "poll failed");
        for (int i = 0; i < 2; i++) {
            if (p[i].fd < 0 || !p[i].revents) continue;
            char *at = tg_buf_reserve(bufs[i], 16384);
            if (!at) return tg_fail_nomem(err, 16384);
            ssize_t n = read(p[i].fd, at, 16383);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0)
                p[i].fd = -1;
            else
                bufs[i]->len += (size_t)n;
            bufs[i]->data[bufs[i]->len] = '\0';
            if (bufs[i]->len > CAPTURE_MAX)
                return tg_fail(err, TG_DATA, "a child process printed more than %d bytes",
                               CAPTURE_MAX);
        }
    }
    return TG_OK;
}

static tg_status run_captured(const char *const *argv, tg_buf *out, tg_buf *errors, int *code,
                              tg_error *err) {
    int o[2] = {-1, -1}, e[2] = {-1, -1};
    if (pipe2(o, O_CLOEXEC)) return tg_fail_errno(err, TG_UNAVAILABLE, "cannot make a pipe");
    if (pipe2(e, O_CLOEXEC)) {
        tg_status st = tg_fail_errno(err, TG_UNAVAILABLE, "cannot make a pipe");
        close(o[0]);
        close(o[1]);
        return st;
    }
    pid_t pid = -1;
    tg_status st =
        tg_child_start(&pid, argv, &(tg_child_io){.out = o[1], .err = e[1], .parent_fd = -1}, err);
    close(o[1]);
    close(e[1]);
    if (st == TG_OK) {
        st = drain((int[]){o[0], e[0]}, (tg_buf *[]){out, errors}, err);
        if (st != TG_OK) kill(pid, SIGKILL);
        int status = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        *code = tg_child_code(status);
    }
    close(o[0]);
    close(e[0]);
    return st;
}

tg_status tg_child_capture(const char *binary, const char *const *args, tg_buf *out, tg_buf *errors,
                           int *code, tg_error *err) {
    char *path = NULL;
    tg_status st = tg_sibling_path(binary, &path, err);
    if (st != TG_OK) return st;
    size_t n = 0;
    while (args[n]) n++;
    const char **argv = tg_alloc_array(n + 2, sizeof *argv);
    if (argv) {
        argv[0] = path;
        memcpy(argv + 1, args, n * sizeof *argv);
        st = run_captured(argv, out, errors, code, err);
    } else {
        st = tg_fail_nomem(err, n * sizeof *argv);
    }
    tg_free(argv);
    tg_free(path);
    return st;
}
