/* A run that only evaluates: the model as it is, on the splits that were asked for. Epoch 0, as before training: the same seed draws the same
 * samples. */
#include "learner/train/evaluate.h"

#include "common/base/log.h"
#include "proto/split.h"

static tg_status open_model(const tg_run *run, tg_model **m, tg_error *err) {
    const unsigned flags = run->settings->train & TG_MODEL_ROUNDED;
    return run->model_folder ? tg_model_open(m, run->be, run->model_folder, flags, run->seed, err)
                             : tg_model_create(m, run->be, &run->arch, flags, run->seed, err);
}

/* Found before anything is generated. */
static tg_status check_splits(const tg_run *run, const tg_split_list *splits, tg_error *err) {
    for (int i = 0; i < splits->n; i++)
        if (run->spec->n_samples[splits->v[i]] == 0)
            return tg_fail(err, TG_NOINPUT,
                           "the data pool has no %s split (see datapool.args); --split chooses "
                           "others",
                           tg_split_name(splits->v[i]));
    return TG_OK;
}

tg_status tg_run_evaluate(tg_run *run, tg_error *err) {
    const tg_split_list *splits = &run->opts.evaluation->splits;
    tg_model *m = NULL;
    tg_status st = check_splits(run, splits, err);
    if (st == TG_OK) st = open_model(run, &m, err);
    for (int i = 0; st == TG_OK && i < splits->n; i++)
        st = tg_evaluate(run, m, NULL, splits->v[i], 0, tg_split_name(splits->v[i]), err);
    if (st == TG_OK)
        st = tg_track_send(run->track, &(tg_track_event){.kind = TG_TRACK_FINISH}, err);
    if (st == TG_INTERRUPTED)
        st = tg_fail(err, TG_INTERRUPTED, "stopped by %s", tg_halt_reason(run->opts.halt));
    tg_model_destroy(&m);
    return st;
}
