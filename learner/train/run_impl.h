/* What the files of opening a run share. */
#ifndef TG_TRAIN_RUN_IMPL_H
#define TG_TRAIN_RUN_IMPL_H

#include "learner/train/run.h"

/* Lengths, end tokens and stop strings, once the workers have said what the environment is. */
tg_status tg_run_settle_generation(tg_run *run, tg_error *err) TG_MUST_CHECK;

#endif
