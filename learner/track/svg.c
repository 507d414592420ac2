/* curves.svg of the run folder: one panel for each number that matters, drawn from the jsonl files.
 * Self-contained, no script. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "learner/track/panels.h"
#include "learner/track/plot.h"
#include "learner/track/track.h"

enum { HEADER = 44 };

static bool put_panel(tg_buf *b, const tg_panel *p, int column, int row) {
    const tg_series *s = &p->series;
    double *smooth = tg_alloc_array((size_t)s->n, sizeof *smooth);
    if (!smooth) return false;
    tg_series_smooth(s, TG_MAX(1, s->n / 12), smooth);
    const tg_curve curves[] = {
        {s->x, s->y, NULL, NULL, s->n, "raw", NULL},
        {s->x, smooth, NULL, NULL, s->n, "mean", NULL},
    };
    tg_plot_draw(b, p->title, curves, 2, column * TG_PLOT_W, HEADER + row * TG_PLOT_H);
    tg_free(smooth);
    return true;
}

static void put_document(tg_buf *b, const tg_track_run *run, const tg_panels *p) {
    int drawn = 0;
    for (int i = 0; i < p->n; i++) drawn += p->at[i].series.n >= 2;
    int columns = TG_MIN(drawn, 2), rows = columns ? (drawn + columns - 1) / columns : 0;
    if (!drawn) return;
    int width = columns * TG_PLOT_W, height = HEADER + rows * TG_PLOT_H + 8;
    tg_buf_printf(b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\">\n<style>%s.h{font-size:15px;font-weight:bold;fill:#222}"
                  ".raw{stroke:#9ecae1;stroke-width:1}.mean{stroke:#1f6fb4}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"h\" "
                  "x=\"16\" y=\"26\">",
                  width, height, width, height, tg_plot_style);
    tg_plot_escaped(b, run->title ? run->title : "textgen");
    tg_buf_printf(b, " (by %s; thick: running mean)</text>\n", run->unit ? run->unit : "step");
    for (int i = 0, k = 0; i < p->n; i++) {
        if (p->at[i].series.n < 2) continue;
        if (!put_panel(b, &p->at[i], k % columns, k / columns)) b->failed = true;
        k++;
    }
    tg_buf_puts(b, "</svg>\n");
}

static tg_status draw(const tg_track_run *run, tg_error *err) {
    tg_panels panels = {0};
    tg_status st = tg_panels_read(&panels, run->run_dir, err);
    tg_buf b = {0};
    if (st == TG_OK) put_document(&b, run, &panels);
    if (b.failed) st = tg_fail_nomem(err, b.len);
    if (st == TG_OK && b.len) {
        char *path = tg_path_join(run->run_dir, "curves.svg");
        st = path ? tg_file_write_atomic(path, b.data, b.len, err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    tg_buf_fini(&b);
    tg_panels_fini(&panels);
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
