/* What a person at the terminal sees: one line that moves, samples before and after, the curve at
 * the end. Without a terminal the line becomes a log line every now and then. Everything goes to
 * stderr. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "learner/track/chart.h"
#include "learner/track/track.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct progress {
    const tg_track_run *run;
    bool open_line;      /* the cursor is behind an unfinished line */
    double next_plain_s; /* when the next line is due without a terminal */
} progress;

static tg_status progress_open(void **state, const tg_track_run *run, tg_error *err) {
    progress *p = tg_alloc(sizeof *p);
    if (!p) return tg_fail_nomem(err, sizeof *p);
    p->run = run;
    *state = p;
    return TG_OK;
}

static void end_line(progress *p) {
    if (p->open_line) fputc('\n', stderr);
    p->open_line = false;
}

static void progress_close(void *state) {
    end_line(state);
    tg_free(state);
}

static void put_duration(tg_buf *b, double seconds) {
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        tg_buf_printf(b, "%" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60, s % 60);
    else
        tg_buf_printf(b, "%" PRId64 ":%02" PRId64, s / 60, s % 60);
}

static void put_line(tg_buf *b, const tg_track_run *run, const tg_track_progress *p) {
    tg_buf_printf(b, "%s %" PRId64 "/%" PRId64, run->unit, p->done, p->total);
    if (!isnan(p->reward)) tg_buf_printf(b, "  reward %.3f", p->reward);
    if (!isnan(p->loss)) tg_buf_printf(b, "  loss %.4f", p->loss);
    if (!isnan(p->kl)) tg_buf_printf(b, "  KL %.4f", p->kl);
    if (!isnan(p->kl_coeff)) tg_buf_printf(b, "  KL coefficient %.4g", p->kl_coeff);
    if (!isnan(p->tokens_per_s)) tg_buf_printf(b, "  %.0f tokens/s", p->tokens_per_s);
    if (!isnan(p->seconds_left)) {
        tg_buf_puts(b, "  ");
        put_duration(b, p->seconds_left);
        tg_buf_puts(b, " left");
    }
}

static void show_progress(progress *p, const tg_track_progress *now) {
    tg_buf b = {0};
    put_line(&b, p->run, now);
    double seconds = tg_clock_seconds();
    if (p->run->terminal) {
        fprintf(stderr, "\r%s\033[K", b.data ? b.data : "");
        fflush(stderr);
        p->open_line = true;
        if (now->done == now->total) end_line(p);
    } else if (seconds >= p->next_plain_s || now->done == now->total) {
        fprintf(stderr, "%s\n", b.data ? b.data : "");
        p->next_plain_s = seconds + 5;
    }
    tg_buf_fini(&b);
}

/* One line, control characters made visible, not too long. */
static void put_clean(tg_buf *b, const char *text, int most) {
    int used = 0;
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool start = (c & 0xC0) != 0x80; /* of a UTF-8 sequence */
        if (start && used++ >= most) {
            tg_buf_puts(b, "…");
            return;
        }
        if (c == '\n')
            tg_buf_puts(b, "⏎");
        else if (c < 0x20 || c == 0x7f)
            tg_buf_puts(b, "·");
        else
            tg_buf_putc(b, (char)c);
    }
}

static const tg_track_metric *first_sampled(const tg_track_evaluation *e) {
    for (size_t m = 0; m < e->n_metrics; m++)
        if (e->metrics[m].samples) return &e->metrics[m];
    return NULL;
}

static void show_samples(progress *p, const tg_track_evaluation *e) {
    tg_buf b = {0};
    const tg_track_metric *score = first_sampled(e);
    tg_buf_printf(&b, "\n%s", e->heading);
    for (size_t m = 0; m < e->n_metrics && m < 3; m++)
        if (e->metrics[m].has_corpus)
            tg_buf_printf(&b, "%s %s %.3f", m ? "," : ":", e->metrics[m].key, e->metrics[m].corpus);
    tg_buf_puts(&b, "\n");
    for (size_t i = 0; i < e->n_predictions && (int64_t)i < p->run->n_samples_shown; i++) {
        if (score)
            tg_buf_printf(&b, "  %6.3f  ", score->samples[i]);
        else
            tg_buf_puts(&b, "  ");
        put_clean(&b, e->predictions[i].prompt, 40);
        tg_buf_puts(&b, " → ");
        put_clean(&b, e->predictions[i].text, 100);
        tg_buf_putc(&b, '\n');
    }
    end_line(p);
    if (b.data) fputs(b.data, stderr);
    fputc('\n', stderr);
    tg_buf_fini(&b);
}

static double mean_of(const double *values, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += values[i];
    return sum / n;
}

static void put_summary(tg_buf *b, const tg_track_run *run, const tg_series *s) {
    int k = TG_MAX(1, TG_MIN(5, s->n / 4));
    if (s->n >= 2)
        tg_buf_printf(b, "\n%s: %.4g at the start, %.4g at the end (mean of %d %s)\n",
                      run->curve_key, mean_of(s->y, k), mean_of(s->y + s->n - k, k), k,
                      run->curve_x ? "lines" : "iterations");
    tg_buf_printf(b, "run folder: %s (model/, curves.svg, checkpoints/, *.jsonl)\n", run->run_dir);
}

/* The curve and what there is to look at now. */
static tg_status show_end(progress *p, tg_error *err) {
    char *path = tg_path_join(p->run->run_dir, p->run->curve_file);
    if (!path) return tg_fail_nomem(err, 0);
    tg_series s = {0};
    tg_buf b = {0};
    tg_status st = tg_series_read(&s, path, NULL, p->run->curve_key, p->run->curve_x, err);
    if (st == TG_OK)
        tg_chart_draw(&b, &s, 1, p->run->curve_key, p->run->unit,
                      (tg_chart_size){.columns = 64, .rows = 10});
    if (st == TG_OK) put_summary(&b, p->run, &s);
    end_line(p);
    if (b.data) fputs(b.data, stderr);
    tg_buf_fini(&b);
    tg_series_fini(&s);
    tg_free(path);
    return st;
}

static tg_status progress_send(void *state, const tg_track_event *event, tg_error *err) {
    progress *p = state;
    if (p->run->quiet) return TG_OK;
    if (event->kind == TG_TRACK_PROGRESS) show_progress(p, event->progress);
    if (event->kind == TG_TRACK_EVALUATION && event->evaluation->heading)
        show_samples(p, event->evaluation);
    return event->kind == TG_TRACK_FINISH && p->run->curve_file ? show_end(p, err) : TG_OK;
}

const tg_tracker_ops tgi_track_progress = {
    "progress", "a line on the terminal, samples before and after, the curve at the end",
    progress_open, progress_send, progress_close};
