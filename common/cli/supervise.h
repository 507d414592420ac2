/* Keeping a run's processes alive: one learner, N workers.
 *
 * Returns when the run is over, with nothing left running. SIGINT and SIGTERM stop the learner, then the workers (SIGTERM, a
 * deadline, SIGKILL; a second signal kills at once, unless it comes within half a second). A worker that dies is reported and restarted
 * with growing delay; too many deaths, or a death by a wrong config, end the run. If this process is killed, the kernel kills the children. */
#ifndef TG_CLI_SUPERVISE_H
#define TG_CLI_SUPERVISE_H

#include "common/base/status.h"

typedef struct tg_run_plan {
    const char *name;           /* of the command, for messages */
    const char *const *learner; /* argv, NULL-terminated; argv[0] is a path */
    const char *const *worker;
    int n_workers;
    const char *worker_log; /* file for what workers print; their error lines also go to stderr */
} tg_run_plan;

/* *code: the learner's exit code (128 + signal when one killed it), or that of the reason the run was ended. Call it from the
 * main thread; it owns SIGINT, SIGTERM, SIGHUP and SIGCHLD while it runs. */
tg_status tg_supervise(const tg_run_plan *plan, int *code, tg_error *err) TG_MUST_CHECK;

#endif
