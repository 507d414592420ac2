/* Child processes: finding a sibling binary, starting it so that it cannot outlive us, and running one for its output. */
#ifndef TG_CLI_PROCESS_H
#define TG_CLI_PROCESS_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/* The program of that name beside this one ($TEXTGEN_LIBEXEC names another folder). Returns an owned path (tg_free);
 * TG_UNAVAILABLE when it is not there. */
tg_status tg_sibling_path(const char *name, char **path, tg_error *err) TG_MUST_CHECK;

typedef struct tg_child_io {
    int out, err; /* descriptors that become stdout and stderr; -1: inherited */
    int parent_fd; /* read end of a pipe we hold open: its end of file tells the child that we are gone; -1: none */
    bool own_group; /* a process group of its own, so that a Ctrl-C reaches only us */
} tg_child_io;

/* Starts argv[0] (a path). The child dies with us (PR_SET_PDEATHSIG) and starts with default signal handling; parent_fd
 * is passed as TEXTGEN_PARENT_FD. Fails when the program cannot be executed. Call it from the main thread only. */
tg_status tg_child_start(pid_t *pid, const char *const *argv, const tg_child_io *io,
                         tg_error *err) TG_MUST_CHECK;

/* "exit code 3" or "signal 9 (Killed)" from a wait status; size at least 64. */
void tg_child_fate(int wait_status, char *out, size_t size);
/* The exit code of a shell: the child's own, or 128 + signal. */
int tg_child_code(int wait_status);

/* Runs a sibling to its end and collects what it prints (each at most 8 MiB). TG_OK whenever it ran: its own exit code
 * is in *code. args is NULL-terminated and starts behind the program's name. */
tg_status tg_child_capture(const char *binary, const char *const *args, tg_buf *out, tg_buf *errors,
                           int *code, tg_error *err) TG_MUST_CHECK;

#endif
