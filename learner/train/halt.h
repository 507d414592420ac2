/* Asking a run to stop: SIGINT, SIGTERM, or the death of the process that started us.
 *
 *     tg_halt *stop;
 *     tg_halt_create(&stop, parent_fd, die, err);
 *     if (tg_halt_requested(stop)) ...                // between two steps
 *
 * A thread of its own takes what the signal handler passes on; everyone else only reads a flag. One at
 * a time in a process. A second signal, unless it comes within half a second, or two seconds after the parent's death, calls `die`. */
#ifndef TG_TRAIN_HALT_H
#define TG_TRAIN_HALT_H

#include "common/base/status.h"

#include <stdbool.h>

typedef struct tg_halt tg_halt;
typedef void tg_halt_die(int exit_code); /* does not return */

/* parent_fd: reading end of a pipe that the parent keeps open, or -1. */
tg_status tg_halt_create(tg_halt **out, int parent_fd, tg_halt_die *die,
                         tg_error *err) TG_MUST_CHECK;
void tg_halt_destroy(tg_halt **s);        /* the signals do again what they did before */
bool tg_halt_requested(const tg_halt *s); /* NULL: false */
/* "SIGINT", "SIGTERM", "the parent process is gone", or "" when not requested. */
const char *tg_halt_reason(const tg_halt *s);
/* For tests, and for a run that wants to end itself. */
void tg_halt_request(tg_halt *s, const char *static_reason);

#endif
