/* The supervisor's loop: one poll() over a signalfd and the workers' pipes. Single-threaded; nothing here blocks for long.
 *
 * Phases only move forward: RUNNING, STOP_LEARNER (asked to end), STOP_WORKERS (learner is gone), then done when no child
 * is left. Each stop phase has a deadline after which its processes are killed. */
#include "common/cli/supervise.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/cli/process.h"
#include "common/cli/worker_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RESTARTS_MAX = 10, /* in RESTART_WINDOW_MS, over all workers */
    RESTART_WINDOW_MS = 60000,
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 5000,
    /* As deploy/textgen-learner@.service has it: an update of a large model cannot be cut, and what it has learnt is saved behind it. Who
     * does not want to wait asks again. */
    LEARNER_STOP_MS = 300000,
    WORKER_STOP_MS = 5000,
};

typedef enum phase { RUNNING, STOP_LEARNER, STOP_WORKERS } phase;

typedef struct worker {
    pid_t pid;           /* 0: not running */
    uint64_t restart_at; /* 0: none planned */
    unsigned deaths;     /* in a row: each within the window of the last */
    uint64_t last_death;
    tg_worker_output output;
} worker;

typedef struct supervisor {
    const tg_run_plan *plan;
    pid_t learner; /* 0: gone */
    worker *workers;
    struct pollfd *polls; /* signalfd, then one per worker */
    int signals, log;
    int parent_pipe[2];
    uint64_t restarts[RESTARTS_MAX]; /* times of the newest ones, a ring */
    size_t n_restarts;
    phase phase;
    uint64_t asked; /* when a signal asked to stop; 0: none has */
    uint64_t deadline;
    int code;
    bool code_set;
} supervisor;

static void say(const supervisor *s, const char *fmt, ...) TG_PRINTF(2, 3);
static void say(const supervisor *s, const char *fmt, ...) {
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", s->plan->name, line);
}

static void set_code(supervisor *s, int code) {
    if (!s->code_set) s->code = code;
    s->code_set = true;
}

/* ---- stopping ------------------------------------------------------------------------------ */

static void signal_workers(supervisor *s, int sig) {
    for (int i = 0; i < s->plan->n_workers; i++) {
        if (s->workers[i].pid) kill(s->workers[i].pid, sig);
    }
}

static void stop_workers(supervisor *s) {
    s->phase = STOP_WORKERS;
    s->deadline = tg_clock_ms() + WORKER_STOP_MS;
    for (int i = 0; i < s->plan->n_workers; i++) s->workers[i].restart_at = 0;
    signal_workers(s, SIGTERM);
}

static void stop_learner(supervisor *s, int sig) {
    if (s->phase != RUNNING) return;
    s->phase = STOP_LEARNER;
    s->deadline = tg_clock_ms() + LEARNER_STOP_MS;
    if (s->learner)
        kill(s->learner, sig);
    else
        stop_workers(s);
}

/* The run cannot go on: the reason decides the exit code, whatever the learner then returns. */
static void give_up(supervisor *s, int code) {
    if (s->phase != RUNNING) return;
    set_code(s, code);
    stop_learner(s, SIGTERM);
}

static void kill_everything(supervisor *s) {
    if (s->learner) kill(s->learner, SIGKILL);
    signal_workers(s, SIGKILL);
}

static void deadline_passed(supervisor *s) {
    s->deadline = 0;
    if (s->phase == STOP_LEARNER)
        say(s, "the learner did not end in %d s: killing it", LEARNER_STOP_MS / 1000);
    if (s->phase == STOP_LEARNER && s->learner) kill(s->learner, SIGKILL);
    if (s->phase == STOP_WORKERS) signal_workers(s, SIGKILL);
}

/* ---- starting ------------------------------------------------------------------------------ */

static tg_status start_learner(supervisor *s, tg_error *err) {
    return tg_child_start(
        &s->learner, s->plan->learner,
        &(tg_child_io){.out = -1, .err = -1, .parent_fd = s->parent_pipe[0], .own_group = true},
        err);
}

static tg_status start_worker(supervisor *s, int i, tg_error *err) {
    worker *w = &s->workers[i];
    int ends[2];
    w->restart_at = 0;
    if (pipe2(ends, O_CLOEXEC))
        return tg_fail_errno(err, TG_UNAVAILABLE, "worker %d: cannot make a pipe", i);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    tg_status st = tg_child_start(
        &w->pid, s->plan->worker,
        &(tg_child_io){
            .out = ends[1], .err = ends[1], .parent_fd = s->parent_pipe[0], .own_group = true},
        err);
    close(ends[1]);
    if (st != TG_OK) {
        close(ends[0]);
        w->pid = 0;
        return st;
    }
    tg_worker_output_init(&w->output, i, ends[0], s->log);
    return TG_OK;
}

/* False: too many restarts in the window. */
static bool count_restart(supervisor *s, uint64_t now) {
    uint64_t *oldest = &s->restarts[s->n_restarts % RESTARTS_MAX];
    if (s->n_restarts >= RESTARTS_MAX && now - *oldest < RESTART_WINDOW_MS) return false;
    *oldest = now;
    s->n_restarts++;
    return true;
}

/* A wrong config or a missing input does not get better by starting again. */
static bool is_hopeless(int code) {
    return code == tg_status_exit_code(TG_USAGE) || code == tg_status_exit_code(TG_DATA) ||
           code == tg_status_exit_code(TG_NOINPUT) || code == tg_status_exit_code(TG_CONFIG);
}

static void worker_died(supervisor *s, int i, int status) {
    worker *w = &s->workers[i];
    tg_worker_output_finish(&w->output);
    w->pid = 0;
    if (s->phase != RUNNING) return;
    char fate[64];
    tg_child_fate(status, fate, sizeof fate);
    int code = tg_child_code(status);
    uint64_t now = tg_clock_ms();
    if (is_hopeless(code)) {
        say(s, "worker %d ended with %s: the run cannot go on", i, fate);
        give_up(s, code);
        return;
    }
    if (!count_restart(s, now)) {
        say(s,
            "worker %d ended with %s; %d restarts in %d s are too many: the run ends (%s has the "
            "details)",
            i, fate, RESTARTS_MAX, RESTART_WINDOW_MS / 1000, s->plan->worker_log);
        give_up(s, tg_status_exit_code(TG_UNAVAILABLE));
        return;
    }
    w->deaths = w->last_death && now - w->last_death < RESTART_WINDOW_MS ? w->deaths + 1 : 0;
    w->last_death = now;
    uint64_t delay =
        TG_MIN((uint64_t)BACKOFF_FIRST_MS << TG_MIN(w->deaths, 10u), (uint64_t)BACKOFF_MAX_MS);
    /* A worker also ends, with 0, when the learner says goodbye: leave the learner time to end, too. */
    w->restart_at = now + (code ? delay : (uint64_t)BACKOFF_MAX_MS);
    if (code) say(s, "worker %d ended with %s; starting it again", i, fate);
}

static void restart_due(supervisor *s) {
    uint64_t now = tg_clock_ms();
    for (int i = 0; s->phase == RUNNING && i < s->plan->n_workers; i++) {
        if (!s->workers[i].restart_at || s->workers[i].restart_at > now) continue;
        tg_error err = {0};
        if (start_worker(s, i, &err) == TG_OK) continue;
        say(s, "worker %d: %s", i, err.msg);
        give_up(s, tg_status_exit_code(err.status));
    }
}

/* ---- events -------------------------------------------------------------------------------- */

static void learner_ended(supervisor *s, int status) {
    s->learner = 0;
    if (WIFSIGNALED(status)) {
        char fate[64];
        tg_child_fate(status, fate, sizeof fate);
        if (s->phase == RUNNING) say(s, "the learner was ended by %s", fate);
    }
    set_code(s, tg_child_code(status));
    stop_workers(s);
}

static void reap(supervisor *s) {
    int status;
    if (s->learner && waitpid(s->learner, &status, WNOHANG) == s->learner) learner_ended(s, status);
    for (int i = 0; i < s->plan->n_workers; i++) {
        pid_t pid = s->workers[i].pid;
        if (pid && waitpid(pid, &status, WNOHANG) == pid) worker_died(s, i, status);
    }
}

/* Ctrl-Z reaches only this process: the others are in groups of their own. All stop, and go on when this one does. */
static void pause_all(supervisor *s) {
    uint64_t from = tg_clock_ms();
    if (s->learner) kill(s->learner, SIGSTOP);
    signal_workers(s, SIGSTOP);
    raise(SIGSTOP);
    signal_workers(s, SIGCONT); /* before the learner looks for them */
    if (s->learner) kill(s->learner, SIGCONT);
    if (s->deadline) s->deadline += tg_clock_ms() - from;
}

static void take_signals(supervisor *s) {
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        int sig = (int)info.ssi_signo;
        if (sig == SIGCHLD)
            continue; /* signals of one kind merge: reap() looks at every child anyway */
        if (sig == SIGTSTP) {
            pause_all(s);
        } else if (s->phase == RUNNING) {
            say(s, "%s: stopping (once more to stop at once)",
                sig == SIGINT ? "interrupted" : strsignal(sig));
            s->asked = tg_clock_ms();
            stop_learner(s, sig == SIGHUP ? SIGTERM : sig);
        } else if (!s->asked || tg_clock_ms() - s->asked >= TG_ONE_STOP_MS) {
            kill_everything(s);
        }
    }
}

static bool anything_left(const supervisor *s) {
    bool left = s->learner != 0;
    for (int i = 0; i < s->plan->n_workers; i++) left = left || s->workers[i].pid;
    return left;
}

static int poll_timeout(const supervisor *s) {
    uint64_t next = s->deadline, now = tg_clock_ms();
    for (int i = 0; i < s->plan->n_workers; i++) {
        uint64_t at = s->workers[i].restart_at;
        if (at && (!next || at < next)) next = at;
    }
    return !next ? -1 : next <= now ? 0 : (int)(next - now);
}

static void loop(supervisor *s) {
    int n = s->plan->n_workers;
    while (anything_left(s) || s->phase == RUNNING) {
        s->polls[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
        for (int i = 0; i < n; i++) {
            worker *w = &s->workers[i];
            s->polls[i + 1] = (struct pollfd){.fd = w->pid ? w->output.fd : -1, .events = POLLIN};
        }
        poll(s->polls, (nfds_t)n + 1, poll_timeout(s));
        for (int i = 0; i < n; i++) {
            if (s->polls[i + 1].fd >= 0 && s->polls[i + 1].revents)
                tg_worker_output_read(&s->workers[i].output);
        }
        take_signals(s);
        reap(s);
        restart_due(s);
        if (s->deadline && tg_clock_ms() >= s->deadline) deadline_passed(s);
    }
}

/* ---- set-up -------------------------------------------------------------------------------- */

static tg_status open_log(supervisor *s, tg_error *err) {
    s->log = open(s->plan->worker_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return s->log >= 0 ? TG_OK
                       : tg_fail_errno(err, TG_IO, "%s: cannot be written", s->plan->worker_log);
}

static tg_status open_all(supervisor *s, const sigset_t *watched, tg_error *err) {
    size_t n = (size_t)s->plan->n_workers;
    s->workers = tg_alloc_array(n + 1, sizeof *s->workers);
    s->polls = tg_alloc_array(n + 1, sizeof *s->polls);
    if (!s->workers || !s->polls) return tg_fail_nomem(err, (n + 1) * sizeof *s->workers);
    s->signals = signalfd(-1, watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signals < 0 || pipe2(s->parent_pipe, O_CLOEXEC))
        return tg_fail_errno(err, TG_UNAVAILABLE, "cannot watch signals");
    return open_log(s, err);
}

static void close_all(supervisor *s) {
    int fds[] = {s->signals, s->log, s->parent_pipe[0], s->parent_pipe[1]};
    for (size_t i = 0; i < TG_COUNT_OF(fds); i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    tg_free(s->workers);
    tg_free(s->polls);
}

tg_status tg_supervise(const tg_run_plan *plan, int *code, tg_error *err) {
    supervisor s = {.plan = plan, .signals = -1, .log = -1, .parent_pipe = {-1, -1}};
    sigset_t watched, before;
    sigemptyset(&watched);
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCHLD};
    for (size_t i = 0; i < TG_COUNT_OF(signals); i++) sigaddset(&watched, signals[i]);
    sigprocmask(SIG_BLOCK, &watched, &before);
    tg_status st = open_all(&s, &watched, err);
    if (st == TG_OK) st = start_learner(&s, err);
    for (int i = 0; st == TG_OK && i < plan->n_workers; i++) st = start_worker(&s, i, err);
    if (st != TG_OK && s.workers) give_up(&s, tg_status_exit_code(st));
    if (s.workers && s.polls && s.signals >= 0) loop(&s);
    *code = s.code;
    close_all(&s);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}
