/* What `train` and `eval` have in common: a config becomes a run, and the run's work is done under a halt. */
#ifndef TG_LEARNER_CLI_RUN_H
#define TG_LEARNER_CLI_RUN_H

#include "common/config/args.h"
#include "learner/train/run.h"

/* Rows of a flag table: what every such command takes. opts: a tg_run_opts. */
#define TG_RUN_FLAGS(config, opts)                                                                 \
    {"config", TG_FLAG_STR, &(config), "FILE", "The config."},                                     \
        {"run-dir", TG_FLAG_STR, &(opts).run_dir, "DIR", "Where log, metrics and results go."},    \
        {"bind", TG_FLAG_STR, &(opts).bind, "ADDRESS",                                             \
         "Workers connect here, such as ipc:///tmp/pool."},                                        \
        {"connect", TG_FLAG_STR, &(opts).connect, "ADDRESS",                                       \
         "Workers to connect to, separated by commas."},                                           \
        TG_SECURITY_FLAGS((opts).security), TG_OPS_FLAGS((opts).ops)

typedef tg_status tg_run_work(tg_run *run, tg_error *err);

/* opts: without config, settings and halt, which are made here. TG_USAGE without a config (NULL) or a run folder. `die` ends the process at
 * once (a second signal, or a parent that is gone). */
tg_status tg_run_of_config(tg_run_opts opts, const char *config, const tg_args *args,
                           tg_run_work *work, tg_halt_die *die, tg_error *err) TG_MUST_CHECK;

#endif
