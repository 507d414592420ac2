/* Trackers: whoever wants to know how a run goes. The trainer reports events; each tracker makes of
 * them what it is for (files, a line on the terminal, a picture).
 *
 *     tg_track *t;
 *     tg_track_open(&t, &run, err);
 *     tg_track_event e = {.kind = TG_TRACK_ROLLOUT, .numbers = {n, names, values}};
 *     tg_track_send(t, &e, err);
 *     tg_track_close(&t);
 *
 * Everything in an event is borrowed for the call. A tracker is one file and one line in track.c.
 */
#ifndef TG_TRACK_TRACK_H
#define TG_TRACK_TRACK_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_track_run {
    const char *run_dir;
    const char *title; /* of pictures: algorithm and model */
    const char *unit;  /* "iteration" or "step" */
    /* the curve drawn on the terminal at the end: file of the run folder, key, key of x (NULL: the
     * line's number); curve_file NULL: none */
    const char *curve_file, *curve_key, *curve_x;
    int64_t n_samples_shown;
    enum { TG_RESULTS_NONE, TG_RESULTS_TABLE, TG_RESULTS_JSON } results; /* on stdout */
    bool terminal; /* progress may rewrite its line */
    bool quiet;    /* nothing on the terminal */
} tg_track_run;

typedef struct tg_track_numbers {
    int n;
    const char *const *names;
    const double *values;
} tg_track_numbers;

typedef struct tg_track_prediction {
    const char *sample_id, *prompt, *text;
    const char *const *references;
    size_t n_references;
} tg_track_prediction;

typedef struct tg_track_metric {
    const char *key;
    bool has_corpus;
    double corpus;
    const double *samples; /* one per prediction, or NULL */
    const char *error;     /* why there is no value; NULL: nothing went wrong */
} tg_track_metric;

typedef struct tg_track_evaluation {
    double epoch; /* whole for on-policy runs */
    const char *split;
    const tg_track_prediction *predictions;
    size_t n_predictions;
    const tg_track_metric *metrics;
    size_t n_metrics;
    const char *heading; /* non-NULL: show samples under it ("before training") */
} tg_track_evaluation;

/* What a progress line says; NaN: not known. */
typedef struct tg_track_progress {
    int64_t done, total;
    double reward, kl, kl_coeff, loss, tokens_per_s, seconds_left;
} tg_track_progress;

typedef struct tg_track_event {
    enum {
        TG_TRACK_ROLLOUT,    /* numbers: one line of rollout_info */
        TG_TRACK_TRAINING,   /* numbers: one line of training_info */
        TG_TRACK_TIMING,     /* numbers: wall-clock values, kept apart from what is reproducible */
        TG_TRACK_EVALUATION, /* evaluation */
        TG_TRACK_PROGRESS,   /* progress */
        TG_TRACK_FINISH,     /* the run is complete */
    } kind;
    tg_track_numbers numbers;
    const tg_track_evaluation *evaluation;
    const tg_track_progress *progress;
} tg_track_event;

typedef struct tg_tracker_ops {
    const char *name, *summary;
    tg_status (*open)(void **state, const tg_track_run *run,
                      tg_error *err); /* run outlives the state */
    tg_status (*send)(void *state, const tg_track_event *event, tg_error *err);
    void (*close)(void *state);
} tg_tracker_ops;

typedef struct tg_track tg_track;

const tg_tracker_ops *const *tg_tracker_list(void); /* NULL-terminated */
tg_status tg_track_open(tg_track **out, const tg_track_run *run,
                        tg_error *err) TG_MUST_CHECK; /* run is copied, its strings borrowed */
/* In the order of the registry; stops at the first failure. */
tg_status tg_track_send(tg_track *t, const tg_track_event *event, tg_error *err) TG_MUST_CHECK;
void tg_track_close(tg_track **t);

/* The trackers, each in its own file. */
extern const tg_tracker_ops tgi_track_jsonl, tgi_track_progress, tgi_track_svg, tgi_track_results;

#endif
