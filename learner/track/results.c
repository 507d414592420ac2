/* What `textgen eval` prints on stdout: a table for each split, or at the end one JSON object with the values of every sample. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/config/option.h"
#include "learner/track/track.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct results {
    const tg_track_run *run;
    tg_buf json;    /* as far as it is known */
    tg_buf without; /* metrics that have no value, and why */
} results;

static tg_status results_open(void **state, const tg_track_run *run, tg_error *err) {
    results *r = tg_alloc(sizeof *r);
    if (!r) return tg_fail_nomem(err, sizeof *r);
    *r = (results){.run = run};
    *state = r;
    return TG_OK;
}

static void results_close(void *state) {
    results *r = state;
    tg_buf_fini(&r->json);
    tg_buf_fini(&r->without);
    tg_free(r);
}

static void put_samples(tg_buf *b, const double *samples, size_t n) {
    if (!samples) {
        tg_buf_puts(b, "null");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        tg_buf_puts(b, i ? ", " : "[");
        tg_json_number(b, samples[i]);
    }
    tg_buf_putc(b, ']');
}

/* As `textgen score --json` has it, once for each split. */
static void add_json(tg_buf *b, const tg_track_evaluation *e) {
    tg_buf_puts(b, b->len ? ", " : "{");
    tg_json_string(b, e->split, strlen(e->split));
    tg_buf_printf(b, ": {\"n\": %zu, \"metrics\": {", e->n_predictions);
    for (size_t i = 0; i < e->n_metrics; i++) {
        const tg_track_metric *m = &e->metrics[i];
        if (i) tg_buf_puts(b, ", ");
        tg_json_string(b, m->key, strlen(m->key));
        tg_buf_puts(b, ": {\"corpus\": ");
        tg_json_number(b, m->has_corpus ? m->corpus : (double)NAN);
        tg_buf_puts(b, ", \"samples\": ");
        put_samples(b, m->samples, e->n_predictions);
        if (m->error) {
            tg_buf_puts(b, ", \"error\": ");
            tg_json_string(b, m->error, strlen(m->error));
        }
        tg_buf_putc(b, '}');
    }
    tg_buf_puts(b, "}}");
}

static tg_status print_table(const tg_track_evaluation *e, tg_error *err) {
    tg_buf b = {0};
    char title[64];
    snprintf(title, sizeof title, "%s: %zu text%s", e->split, e->n_predictions,
             e->n_predictions == 1 ? "" : "s");
    tg_buf_printf(&b, "%-44s %12s\n", title, "value");
    for (size_t i = 0; i < e->n_metrics; i++) {
        const tg_track_metric *m = &e->metrics[i];
        if (m->has_corpus)
            tg_buf_printf(&b, "%-44s %12.6f\n", m->key, m->corpus);
        else
            tg_buf_printf(&b, "%-44s %12s  %s\n", m->key, "none", m->error ? m->error : "");
    }
    tg_status st = tg_stdout_write(&b, err);
    tg_buf_fini(&b);
    return st;
}

static tg_status take(results *r, const tg_track_evaluation *e, tg_error *err) {
    for (size_t i = 0; i < e->n_metrics; i++) {
        const tg_track_metric *m = &e->metrics[i];
        if (m->has_corpus) continue; /* NaN is a value: the diversity of texts that are too short */
        tg_buf_printf(&r->without, "%s%s of %s (%s)", r->without.len ? ", " : "", m->key, e->split,
                      m->error ? m->error : "none given");
    }
    if (r->run->results == TG_RESULTS_TABLE) return print_table(e, err);
    add_json(&r->json, e);
    return r->json.failed ? tg_fail_nomem(err, r->json.len) : TG_OK;
}

static tg_status finish(results *r, tg_error *err) {
    tg_status st = TG_OK;
    if (r->run->results == TG_RESULTS_JSON) {
        tg_buf_puts(&r->json, "}\n");
        st = tg_stdout_write(&r->json, err);
    }
    if (st == TG_OK && r->without.len) st = tg_fail(err, TG_DATA, "no value: %s", r->without.data);
    return st;
}

static tg_status results_send(void *state, const tg_track_event *event, tg_error *err) {
    results *r = state;
    if (r->run->results == TG_RESULTS_NONE) return TG_OK;
    if (event->kind == TG_TRACK_EVALUATION) return take(r, event->evaluation, err);
    return event->kind == TG_TRACK_FINISH ? finish(r, err) : TG_OK;
}

const tg_tracker_ops tgi_track_results = {
    "results", "the metrics of an evaluation alone, as a table or as JSON", results_open,
    results_send, results_close};
