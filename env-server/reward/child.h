/* A program that answers lines with lines: started with pipes, asked, and never left behind.
 *
 *     tg_line_child c = {.name = "judge"};
 *     tg_line_child_start(&c, argv, err);
 *     tg_line_child_ask(&c, line, len, deadline_ns, max_reply, &reply, err);
 *     tg_line_child_stop(&c);
 *
 * It gets a process group of its own and is killed with us. What it writes to stderr goes into our log. One thread uses a
 * child; it must be the one that started it, since the kernel ties the child's death to that thread. */
#ifndef TG_ENV_REWARD_CHILD_H
#define TG_ENV_REWARD_CHILD_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct tg_line_child {
    const char *name;        /* in log lines; borrowed */
    const atomic_bool *stop; /* set: an ask ends; borrowed, may be NULL */
    pid_t group;             /* its process group; 0: no child */
    pid_t pid;               /* 0: none, or ended and waited for */
    int in, out, err_fd;     /* our ends of its stdin, stdout and stderr */
    tg_buf errors;           /* an unfinished line of its stderr */
} tg_line_child;

/* argv[0] is searched in PATH. TG_UNAVAILABLE: it cannot be started. */
tg_status tg_line_child_start(tg_line_child *c, const char *const *argv,
                              tg_error *err) TG_MUST_CHECK;
/* Writes the line (with its end) and reads one line into reply (without it). *written: some of it reached the pipe, so
 * it may have been processed. TG_TIMEOUT, TG_UNAVAILABLE (it ended; the message says how), TG_DATA (the line is longer
 * than max_reply): after any failure the child must be stopped, since a late answer could be taken for the next one's. */
tg_status tg_line_child_ask(tg_line_child *c, const char *line, size_t len, uint64_t deadline_ns,
                            size_t max_reply, tg_buf *reply, bool *written,
                            tg_error *err) TG_MUST_CHECK;
/* Ends it: its stdin is closed, and after a moment its group is killed. Also of one that is not there. */
void tg_line_child_stop(tg_line_child *c);

#endif
