/* What `train` and `eval` have in common: a config becomes a run, and the run's work is done under a halt. */
#ifndef TG_LEARNER_CLI_RUN_H
#define TG_LEARNER_CLI_RUN_H

#include "common/config/args.h"
#include "learner/train/run.h"

typedef tg_status tg_run_work(tg_run *run, tg_error *err);

/* opts: without config, settings and halt, which are made here. `die` ends the process at once (a second signal, or a parent that is gone). */
tg_status tg_run_of_config(tg_run_opts opts, const char *config, const tg_args *args,
                           tg_run_work *work, tg_halt_die *die, tg_error *err) TG_MUST_CHECK;

#endif
