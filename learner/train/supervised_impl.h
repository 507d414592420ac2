/* The state of supervised training, which its parts share: supervised.c opens it and loops, supervised_step.c makes one step, supervised_log.c
 * says how it went. Private to these. */
#ifndef TG_TRAIN_SUPERVISED_IMPL_H
#define TG_TRAIN_SUPERVISED_IMPL_H

#include "learner/optim/schedule.h"
#include "learner/train/corpus.h"
#include "learner/train/run.h"
#include "learner/train/text_order.h"

typedef struct tg_supervised_run {
    tg_run *run;
    const tg_training_args *args;
    tg_model *model;
    tg_optim *optim;
    tg_pass *pass;     /* NULL until a step needs it, and in evaluations */
    tg_pass_caps caps; /* of the pass: what the steps need of the packer's */
    tg_packer packer;
    tg_corpus corpus;
    tg_schedule schedule;
    tg_text_order order;
    int32_t ignored; /* label left out; -1: none */
    float *logp, *dlogp;
    tg_run_state state; /* iteration: optimizer steps */
    double seconds;     /* of this process's steps */
    int64_t done, tokens, tokens_logged;
    double seconds_logged;
} tg_supervised_run;

/* The step after s->state.iteration, and the pass for it. A loss or gradient that is not finite leaves the weights as they are. */
tg_status tg_supervised_step(tg_supervised_run *s, tg_error *err) TG_MUST_CHECK;

bool tg_supervised_log_due(const tg_supervised_run *s);
/* What is due at this step: the line of the log first, then the texts. */
tg_status tg_supervised_evaluate(tg_supervised_run *s, tg_error *err) TG_MUST_CHECK;
/* To the trackers and to who asks over HTTP. */
tg_status tg_supervised_progress(tg_supervised_run *s, double loss, tg_error *err) TG_MUST_CHECK;

#endif
