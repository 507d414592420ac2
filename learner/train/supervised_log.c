/* What is said of the steps: lines of the log, progress, and evaluations, when transformers' Trainer and RL4LMs have them. */
#include "learner/train/supervised_impl.h"

#include "common/base/log.h"
#include "learner/train/evaluate.h"

#include <inttypes.h>
#include <math.h>

/* Rounded: it names files. */
static double epoch_of(const tg_supervised_run *s) {
    return round((double)s->state.iteration / (double)s->order.steps_per_epoch * 1e4) / 1e4;
}

bool tg_supervised_log_due(const tg_supervised_run *s) {
    int64_t k = s->state.iteration;
    return k > 0 && (k % s->args->logging_steps == 0 || (k == 1 && s->args->logging_first_step));
}

static tg_status send(tg_supervised_run *s, int kind, int n, const char *const *names,
                      const double *values, tg_error *err) {
    tg_track_event e = {.numbers = {n, names, values}};
    e.kind = kind;
    return tg_track_send(s->run->track, &e, err);
}

tg_status tg_supervised_progress(tg_supervised_run *s, double loss, tg_error *err) {
    tg_track_progress p = {.done = s->state.iteration,
                           .total = s->schedule.total,
                           .reward = (double)NAN,
                           .kl = (double)NAN,
                           .kl_coeff = (double)NAN,
                           .loss = loss,
                           .tokens_per_s =
                               s->seconds > 0 ? (double)s->tokens / s->seconds : (double)NAN,
                           .seconds_left = s->seconds / (double)s->done *
                                           (double)(s->schedule.total - s->state.iteration)};
    tg_operations_progress(s->run->operations, &p);
    return tg_track_send(s->run->track,
                         &(tg_track_event){.kind = TG_TRACK_PROGRESS, .progress = &p}, err);
}

static tg_status log_line(tg_supervised_run *s, double loss, tg_error *err) {
    double rate = tg_schedule_rate(&s->schedule, s->state.iteration);
    static const char *const names[] = {"supervised/step", "supervised/epoch", "supervised/loss",
                                        "supervised/learning_rate", "supervised/skipped_steps"};
    const double values[] = {(double)s->state.iteration, epoch_of(s), loss, rate,
                             (double)s->state.skipped};
    static const char *const timing[] = {"step", "seconds", "tokens", "tokens_per_s"};
    double seconds = s->seconds - s->seconds_logged,
           tokens = (double)(s->tokens - s->tokens_logged);
    const double times[] = {(double)s->state.iteration, seconds, tokens,
                            seconds > 0 ? tokens / seconds : (double)NAN};
    s->seconds_logged = s->seconds;
    s->tokens_logged = s->tokens;
    tg_log_info("train", "step %" PRId64 ": loss %.5f, learning rate %.3g", s->state.iteration,
                loss, rate);
    tg_status st = send(s, TG_TRACK_TRAINING, 5, names, values, err);
    return st == TG_OK ? send(s, TG_TRACK_TIMING, 4, timing, times, err) : st;
}

static tg_status evaluate(tg_supervised_run *s, tg_split split, double epoch, const char *heading,
                          tg_error *err) {
    tg_pass_destroy(&s->pass); /* the generator needs the memory */
    tg_optim_rest(s->optim);
    return tg_evaluate(s->run, s->model, NULL, split, epoch, heading, err);
}

tg_status tg_supervised_evaluate(tg_supervised_run *s, tg_error *err) {
    bool first = s->state.iteration == 0, last = s->state.iteration >= s->schedule.total;
    tg_status st = TG_OK;
    if (tg_supervised_log_due(s)) {
        st = log_line(
            s, s->state.loss_n ? s->state.loss_sum / (double)s->state.loss_n : (double)NAN, err);
        if (st == TG_OK && (!last || s->run->compat))
            st = evaluate(s, TG_SPLIT_VAL, epoch_of(s), NULL, err);
    }
    /* transformers logs a summary at the end, and RL4LMs evaluates val at every log */
    if (st == TG_OK && last && s->run->compat)
        st = evaluate(s, TG_SPLIT_VAL, epoch_of(s), NULL, err);
    if (st == TG_OK && (first || last)) {
        double epoch = first ? 0 : s->args->max_steps > 0 ? epoch_of(s) : s->args->num_train_epochs;
        st = evaluate(s, TG_SPLIT_VAL, epoch, last ? "after training" : "before training", err);
        if (st == TG_OK) st = evaluate(s, TG_SPLIT_TEST, epoch, NULL, err);
    }
    if (st != TG_OK) return st;
    if (tg_supervised_log_due(s)) s->state.loss_sum = 0, s->state.loss_n = 0;
    s->state.evaluated = true;
    return tg_artifacts_measure(s->run->run_dir, s->state.sizes, err);
}
