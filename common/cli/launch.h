/* The processes of a run on this machine: a learner, its workers, and where they meet.
 *
 *     tg_launch l = {.name = "textgen train", .command = "train", .run_dir = "runs/a"};
 *     tg_launch_run(&l, &code, err);
 *
 * The children load run_dir/config.json and nothing else, so it is what ran. */
#ifndef TG_CLI_LAUNCH_H
#define TG_CLI_LAUNCH_H

#include "common/base/status.h"

enum { TG_LAUNCH_FLAGS = 6 };

/* Everything is borrowed. */
typedef struct tg_launch {
    const char *name;                   /* of the command, for messages */
    const char *command;                /* of textgen-learner */
    const char *run_dir;                /* holds config.json */
    const char *flags[TG_LAUNCH_FLAGS]; /* more of the learner's, up to the first NULL */
} tg_launch;

/* From the written config to the end of the run. *code as of tg_supervise. */
tg_status tg_launch_run(const tg_launch *l, int *code, tg_error *err) TG_MUST_CHECK;

#endif
