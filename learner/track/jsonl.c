/* The run folder's files, with the names and shapes of RL4LMs: rollout_info.jsonl,
 * training_info.jsonl, <split>_split_metrics.jsonl, epoch_<e>_<split>_split_predictions.json; and
 * timing.jsonl for everything that differs between two equal runs.
 *
 * A line is one write, so a reader never sees half of one. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/option.h"
#include "learner/track/track.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct jsonl {
    const tg_track_run *run;
} jsonl;

static tg_status jsonl_open(void **state, const tg_track_run *run, tg_error *err) {
    jsonl *j = tg_alloc(sizeof *j);
    if (!j) return tg_fail_nomem(err, sizeof *j);
    j->run = run;
    *state = j;
    return TG_OK;
}

static void jsonl_close(void *state) {
    tg_free(state);
}

static void put_key(tg_buf *b, const char *key) {
    tg_json_string(b, key, strlen(key));
    tg_buf_puts(b, ": ");
}

/* 3 rather than 3.0: epochs are counts, and only supervised runs have fractions of them. */
static void put_epoch(tg_buf *b, double epoch) {
    if (epoch == floor(epoch) && fabs(epoch) < 1e15)
        tg_buf_printf(b, "%" PRId64, (int64_t)epoch);
    else
        tg_json_number(b, epoch);
}

static tg_status append(const jsonl *j, const char *name, tg_buf *line, tg_error *err) {
    tg_buf_putc(line, '\n');
    char *path = tg_path_join(j->run->run_dir, name);
    tg_status st = !path || line->failed ? tg_fail_nomem(err, line->len)
                                         : tg_file_append(path, line->data, line->len, err);
    tg_free(path);
    tg_buf_fini(line);
    return st;
}

static tg_status write_numbers(const jsonl *j, const char *name, const tg_track_numbers *numbers,
                               tg_error *err) {
    tg_buf b = {0};
    tg_buf_putc(&b, '{');
    for (int i = 0; i < numbers->n; i++) {
        if (i) tg_buf_puts(&b, ", ");
        put_key(&b, numbers->names[i]);
        tg_json_number(&b, numbers->values[i]);
    }
    tg_buf_putc(&b, '}');
    return append(j, name, &b, err);
}

static void put_value(tg_buf *b, bool known, double value) {
    if (known)
        tg_json_number(b, value);
    else
        tg_buf_puts(b, "\"n/a\"");
}

static void put_string(tg_buf *b, const char *key, const char *text) {
    put_key(b, key);
    tg_json_string(b, text, strlen(text));
}

static void put_prediction(tg_buf *b, const tg_track_evaluation *e, size_t i) {
    const tg_track_prediction *p = &e->predictions[i];
    tg_buf_putc(b, '{');
    put_string(b, "split_name", e->split);
    tg_buf_puts(b, ", ");
    put_string(b, "sample_id", p->sample_id);
    tg_buf_puts(b, ", ");
    put_string(b, "prompt_text", p->prompt);
    tg_buf_puts(b, ", ");
    put_string(b, "generated_text", p->text);
    tg_buf_puts(b, ", ");
    tg_buf refs = {0};
    for (size_t r = 0; r < p->n_references; r++)
        tg_buf_printf(&refs, "<START-%zu>%s<END-%zu>", r + 1, p->references[r], r + 1);
    put_string(b, "ref_text", refs.data ? refs.data : "");
    if (refs.failed) b->failed = true;
    tg_buf_fini(&refs);
    for (size_t m = 0; m < e->n_metrics; m++) {
        tg_buf_puts(b, ", ");
        put_key(b, e->metrics[m].key);
        put_value(b, e->metrics[m].samples != NULL,
                  e->metrics[m].samples ? e->metrics[m].samples[i] : 0);
    }
    tg_buf_putc(b, '}');
}

static tg_status write_predictions(const jsonl *j, const tg_track_evaluation *e, tg_error *err) {
    tg_buf b = {0}, name = {0};
    tg_buf_puts(&name, "epoch_");
    put_epoch(&name, e->epoch);
    tg_buf_printf(&name, "_%s_split_predictions.json", e->split);
    tg_buf_putc(&b, '[');
    for (size_t i = 0; i < e->n_predictions; i++) {
        if (i) tg_buf_puts(&b, ", ");
        put_prediction(&b, e, i);
    }
    tg_buf_putc(&b, ']');
    char *path = name.failed ? NULL : tg_path_join(j->run->run_dir, name.data);
    tg_status st = !path || b.failed ? tg_fail_nomem(err, b.len)
                                     : tg_file_write_atomic(path, b.data, b.len, err);
    tg_free(path);
    tg_buf_fini(&name);
    tg_buf_fini(&b);
    return st;
}

static tg_status write_metrics(const jsonl *j, const tg_track_evaluation *e, tg_error *err) {
    tg_buf b = {0};
    tg_buf_puts(&b, "{\"epoch\": ");
    put_epoch(&b, e->epoch);
    tg_buf_puts(&b, ", \"metrics\": {");
    for (size_t m = 0; m < e->n_metrics; m++) {
        if (m) tg_buf_puts(&b, ", ");
        put_key(&b, e->metrics[m].key);
        put_value(&b, e->metrics[m].has_corpus, e->metrics[m].corpus);
    }
    tg_buf_puts(&b, "}}");
    char name[64];
    snprintf(name, sizeof name, "%s_split_metrics.jsonl", e->split);
    return append(j, name, &b, err);
}

static tg_status jsonl_send(void *state, const tg_track_event *event, tg_error *err) {
    const jsonl *j = state;
    switch (event->kind) {
    case TG_TRACK_ROLLOUT: return write_numbers(j, "rollout_info.jsonl", &event->numbers, err);
    case TG_TRACK_TRAINING: return write_numbers(j, "training_info.jsonl", &event->numbers, err);
    case TG_TRACK_TIMING: return write_numbers(j, "timing.jsonl", &event->numbers, err);
    case TG_TRACK_EVALUATION: {
        tg_status st = write_predictions(j, event->evaluation, err);
        return st == TG_OK ? write_metrics(j, event->evaluation, err) : st;
    }
    default: return TG_OK;
    }
}

const tg_tracker_ops tgi_track_jsonl = {
    "jsonl", "RL4LMs's files in the run folder: rollout and training info, metrics, predictions",
    jsonl_open, jsonl_send, jsonl_close};
