/* curves.svg of the run folder: one panel for each number that matters, drawn from the jsonl files.
 * Self-contained, no script. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "learner/track/series.h"
#include "learner/track/track.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PANEL_W = 420, PANEL_H = 230, LEFT = 62, RIGHT = 14, TOP = 34, BOTTOM = 34, HEADER = 44 };
enum { MAX_PANELS = 24 };

typedef struct panel {
    const char *file, *in, *key, *x_key;
    char title[96];
    tg_series series;
} panel;

static const panel known[] = {
    {"rollout_info.jsonl", NULL, "rollout_info/ep_rew", NULL, "reward of an episode", {0}},
    {"rollout_info.jsonl",
     NULL,
     "rollout_info/kl_div_mean",
     NULL,
     "KL to the reference, per token",
     {0}},
    {"rollout_info.jsonl", NULL, "rollout_info/kl_coeff", NULL, "KL coefficient", {0}},
    {"rollout_info.jsonl", NULL, "rollout_info/ep_lens", NULL, "tokens of an episode", {0}},
    {"training_info.jsonl", NULL, "ppo/value_loss", NULL, "value loss", {0}},
    {"training_info.jsonl", NULL, "ppo/policy_gradient_loss", NULL, "policy gradient loss", {0}},
    {"training_info.jsonl", NULL, "ppo/entropy_loss", NULL, "entropy loss", {0}},
    {"training_info.jsonl", NULL, "ppo/approx_kl", NULL, "KL of the update", {0}},
    {"training_info.jsonl", NULL, "supervised/loss", "supervised/step", "loss", {0}},
    {"training_info.jsonl",
     NULL,
     "supervised/learning_rate",
     "supervised/step",
     "learning rate",
     {0}},
};

static void put_escaped(tg_buf *b, const char *text) {
    for (; *text; text++) {
        if (*text == '<')
            tg_buf_puts(b, "&lt;");
        else if (*text == '>')
            tg_buf_puts(b, "&gt;");
        else if (*text == '&')
            tg_buf_puts(b, "&amp;");
        else
            tg_buf_putc(b, *text);
    }
}

typedef struct frame { /* of one panel: data to pixels */
    double x0, x1, y0, y1;
    int left, top, width, height;
} frame;
static double px(const frame *f, double x) {
    return f->left + (x - f->x0) / (f->x1 - f->x0) * f->width;
}
static double py(const frame *f, double y) {
    return f->top + f->height - (y - f->y0) / (f->y1 - f->y0) * f->height;
}

static void put_polyline(tg_buf *b, const frame *f, const tg_series *s, const double *y,
                         const char *class_name) {
    tg_buf_printf(b, "<polyline class=\"%s\" points=\"", class_name);
    for (int i = 0; i < s->n; i++)
        tg_buf_printf(b, "%s%.1f,%.1f", i ? " " : "", px(f, s->x[i]), py(f, y[i]));
    tg_buf_puts(b, "\"/>\n");
}

static void put_axes(tg_buf *b, const frame *f, tg_ticks tx, tg_ticks ty) {
    char label[32];
    for (int i = 0; i < ty.n; i++) {
        double v = ty.first + i * ty.step;
        tg_tick_text(label, sizeof label, v, ty.step);
        tg_buf_printf(b,
                      "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text class=\"y\" x=\"%d\" "
                      "y=\"%.1f\">%s</text>\n",
                      f->left, py(f, v), f->width, f->left - 6, py(f, v) + 4, label);
    }
    for (int i = 0; i < tx.n; i++) {
        double v = tx.first + i * tx.step;
        if (v < f->x0 - 1e-9 || v > f->x1 + 1e-9) continue;
        tg_tick_text(label, sizeof label, v, tx.step);
        tg_buf_printf(b, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%s</text>\n", px(f, v),
                      f->top + f->height + 16, label);
    }
}

static bool put_panel(tg_buf *b, const panel *p, int column, int row) {
    const tg_series *s = &p->series;
    double *smooth = tg_alloc_array((size_t)s->n, sizeof *smooth);
    if (!smooth) return false;
    tg_series_smooth(s, TG_MAX(1, s->n / 12), smooth);
    double lo = (double)INFINITY, hi = -(double)INFINITY;
    for (int i = 0; i < s->n; i++) {
        lo = fmin(lo, s->y[i]);
        hi = fmax(hi, s->y[i]);
    }
    tg_ticks ty = tg_ticks_for(lo, hi, 6), tx = tg_ticks_for(s->x[0], s->x[s->n - 1], 7);
    frame f = {s->x[0],
               s->x[s->n - 1],
               ty.first,
               ty.first + (ty.n - 1) * ty.step,
               column * PANEL_W + LEFT,
               HEADER + row * PANEL_H + TOP,
               PANEL_W - LEFT - RIGHT,
               PANEL_H - TOP - BOTTOM};
    tg_buf_printf(b, "<text class=\"t\" x=\"%d\" y=\"%d\">", f.left, f.top - 12);
    put_escaped(b, p->title);
    tg_buf_puts(b, "</text>\n");
    put_axes(b, &f, tx, ty);
    put_polyline(b, &f, s, s->y, "raw");
    put_polyline(b, &f, s, smooth, "mean");
    tg_free(smooth);
    return true;
}

/* One panel for each metric that the file's first line names. `keys` owns the names. */
static int add_metrics(panel *panels, int n, const char *run_dir, json_t **keys) {
    char *path = tg_path_join(run_dir, "val_split_metrics.jsonl");
    tg_buf text = {0};
    tg_error ignored;
    if (path && tg_path_exists(path) &&
        tg_file_read(path, (size_t)1 << 30, &text, &ignored) == TG_OK && text.len)
        *keys = json_loadb(text.data, strcspn(text.data, "\n"), 0, NULL);
    tg_buf_fini(&text);
    tg_free(path);
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(*keys, "metrics"), key, value) {
        if (n == MAX_PANELS) break;
        panels[n] = (panel){"val_split_metrics.jsonl", "metrics", key, "epoch", "", {0}};
        snprintf(panels[n].title, sizeof panels[n].title, "val: %s", key);
        n++;
    }
    return n;
}

static void put_document(tg_buf *b, const tg_track_run *run, const panel *panels, int n) {
    int drawn = 0;
    for (int i = 0; i < n; i++) drawn += panels[i].series.n >= 2;
    int columns = TG_MIN(drawn, 2), rows = columns ? (drawn + columns - 1) / columns : 0;
    if (!drawn) return;
    int width = columns * PANEL_W, height = HEADER + rows * PANEL_H + 8;
    tg_buf_printf(
        b,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
        "%d\">\n"
        "<style>text{font:11px sans-serif;fill:#444}.h{font-size:15px;font-weight:bold;fill:#222}"
        ".t{font-weight:bold;fill:#222}.y{text-anchor:end}.x{text-anchor:middle}"
        ".grid{stroke:#e4e4e4;fill:none}.raw{fill:none;stroke:#9ecae1;stroke-width:1}"
        ".mean{fill:none;stroke:#1f6fb4;stroke-width:2;stroke-linejoin:round}</style>\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"h\" x=\"16\" "
        "y=\"26\">",
        width, height, width, height);
    put_escaped(b, run->title ? run->title : "textgen");
    tg_buf_printf(b, " (by %s; thick: running mean)</text>\n", run->unit ? run->unit : "step");
    for (int i = 0, k = 0; i < n; i++) {
        if (panels[i].series.n < 2) continue;
        if (!put_panel(b, &panels[i], k % columns, k / columns)) b->failed = true;
        k++;
    }
    tg_buf_puts(b, "</svg>\n");
}

static tg_status draw(const tg_track_run *run, tg_error *err) {
    panel panels[MAX_PANELS];
    int n = (int)TG_COUNT_OF(known);
    memcpy(panels, known, sizeof known);
    json_t *keys = NULL;
    n = add_metrics(panels, n, run->run_dir, &keys);
    tg_status st = TG_OK;
    for (int i = 0; i < n && st == TG_OK; i++) {
        char *path = tg_path_join(run->run_dir, panels[i].file);
        st = path ? tg_series_read(&panels[i].series, path, panels[i].in, panels[i].key,
                                   panels[i].x_key, err)
                  : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    tg_buf b = {0};
    if (st == TG_OK) put_document(&b, run, panels, n);
    if (b.failed) st = tg_fail_nomem(err, b.len);
    if (st == TG_OK && b.len) {
        char *path = tg_path_join(run->run_dir, "curves.svg");
        st = path ? tg_file_write_atomic(path, b.data, b.len, err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    tg_buf_fini(&b);
    for (int i = 0; i < n; i++) tg_series_fini(&panels[i].series);
    json_decref(keys);
    return st;
}

typedef struct svg {
    const tg_track_run *run;
} svg;

static tg_status svg_open(void **state, const tg_track_run *run, tg_error *err) {
    svg *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->run = run;
    *state = s;
    return TG_OK;
}

static tg_status svg_send(void *state, const tg_track_event *event, tg_error *err) {
    const svg *s = state;
    if (event->kind != TG_TRACK_EVALUATION && event->kind != TG_TRACK_FINISH) return TG_OK;
    return draw(s->run, err);
}

const tg_tracker_ops tgi_track_svg = {"svg",
                                      "curves.svg in the run folder: reward, KL, losses, metrics",
                                      svg_open, svg_send, tg_free};
