/* See plot.h. Pixels are whole panels; all numbers are written with one decimal, so that equal runs
 * give equal pictures. */
#include "learner/track/plot.h"

#include "learner/track/series.h"

#include <math.h>
#include <stdbool.h>

enum { LEFT = 62, RIGHT = 14, TOP = 34, BOTTOM = 34 };

const char tg_plot_style[] =
    "text{font:11px sans-serif;fill:#444}.t{font-weight:bold;fill:#222}.y{text-anchor:end}"
    ".x{text-anchor:middle}.grid{stroke:#e4e4e4;fill:none}"
    "polyline{fill:none;stroke-width:2;stroke-linejoin:round}polygon{stroke:none;opacity:.2}";

typedef struct frame { /* data to pixels */
    double x0, x1, y0, y1;
    int left, top, width, height;
} frame;

static double px(const frame *f, double x) {
    return f->left + (x - f->x0) / (f->x1 - f->x0) * f->width;
}
static double py(const frame *f, double y) {
    return f->top + f->height - (y - f->y0) / (f->y1 - f->y0) * f->height;
}

void tg_plot_escaped(tg_buf *b, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '<': tg_buf_puts(b, "&lt;"); break;
        case '>': tg_buf_puts(b, "&gt;"); break;
        case '&': tg_buf_puts(b, "&amp;"); break;
        case '"': tg_buf_puts(b, "&quot;"); break;
        default: tg_buf_putc(b, *text);
        }
    }
}

static void put_line(tg_buf *b, const frame *f, const tg_curve *c) {
    tg_buf_printf(b, "<polyline class=\"%s\" points=\"", c->line);
    for (int i = 0; i < c->n; i++)
        tg_buf_printf(b, "%s%.1f,%.1f", i ? " " : "", px(f, c->x[i]), py(f, c->y[i]));
    tg_buf_puts(b, "\"/>\n");
}

static void put_band(tg_buf *b, const frame *f, const tg_curve *c) {
    tg_buf_printf(b, "<polygon class=\"%s\" points=\"", c->band);
    for (int i = 0; i < c->n; i++) tg_buf_printf(b, "%.1f,%.1f ", px(f, c->x[i]), py(f, c->hi[i]));
    for (int i = c->n - 1; i >= 0; i--)
        tg_buf_printf(b, "%.1f,%.1f%s", px(f, c->x[i]), py(f, c->lo[i]), i ? " " : "");
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

/* What all curves span, bands included. false: there is nothing to draw. */
static bool span(const tg_curve *curves, int n, frame *f) {
    *f = (frame){.x0 = (double)INFINITY,
                 .x1 = -(double)INFINITY,
                 .y0 = (double)INFINITY,
                 .y1 = -(double)INFINITY};
    bool any = false;
    for (int k = 0; k < n; k++) {
        const tg_curve *c = &curves[k];
        if (c->n < 2) continue;
        any = true;
        f->x0 = fmin(f->x0, c->x[0]);
        f->x1 = fmax(f->x1, c->x[c->n - 1]);
        for (int i = 0; i < c->n; i++) {
            f->y0 = fmin(f->y0, c->lo ? c->lo[i] : c->y[i]);
            f->y1 = fmax(f->y1, c->hi ? c->hi[i] : c->y[i]);
        }
    }
    return any;
}

void tg_plot_draw(tg_buf *b, const char *title, const tg_curve *curves, int n, int left, int top) {
    frame f;
    if (!span(curves, n, &f)) return;
    tg_ticks ty = tg_ticks_for(f.y0, f.y1, 6), tx = tg_ticks_for(f.x0, f.x1, 7);
    f.y0 = ty.first;
    f.y1 = ty.first + (ty.n - 1) * ty.step;
    f.left = left + LEFT;
    f.top = top + TOP;
    f.width = TG_PLOT_W - LEFT - RIGHT;
    f.height = TG_PLOT_H - TOP - BOTTOM;
    tg_buf_printf(b, "<text class=\"t\" x=\"%d\" y=\"%d\">", f.left, f.top - 12);
    tg_plot_escaped(b, title);
    tg_buf_puts(b, "</text>\n");
    put_axes(b, &f, tx, ty);
    for (int k = 0; k < n; k++)
        if (curves[k].n >= 2 && curves[k].lo) put_band(b, &f, &curves[k]);
    for (int k = 0; k < n; k++)
        if (curves[k].n >= 2) put_line(b, &f, &curves[k]);
}
