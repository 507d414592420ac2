/* Drawing with braille: each character is a grid of 2 x 4 dots, U+2800 plus one bit for each dot.
 */
#include "learner/track/chart.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct canvas {
    unsigned char *cells;  /* (rows, columns) dot bits */
    unsigned char *colour; /* (rows, columns) of the curve drawn there last */
    int columns, rows;
    int pen;
} canvas;

static void dot(canvas *c, int x, int y) { /* y grows upwards */
    static const unsigned char bit[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    if (x < 0 || y < 0 || x >= 2 * c->columns || y >= 4 * c->rows) return;
    int row = c->rows - 1 - y / 4;
    c->cells[row * c->columns + x / 2] |= bit[x % 2][y % 4];
    c->colour[row * c->columns + x / 2] = (unsigned char)c->pen;
}

static void line(canvas *c, double x0, double y0, double x1, double y1) {
    int steps = (int)ceil(TG_MAX(fabs(x1 - x0), fabs(y1 - y0)));
    for (int i = 0; i <= steps; i++) {
        double t = steps ? (double)i / steps : 0;
        dot(c, (int)lround(x0 + t * (x1 - x0)), (int)lround(y0 + t * (y1 - y0)));
    }
}

static void put_braille(tg_buf *out, unsigned char bits) {
    if (!bits) {
        tg_buf_putc(out, ' ');
        return;
    }
    unsigned code = 0x2800u + bits;
    char utf8[3] = {(char)(0xE0 | (code >> 12)), (char)(0x80 | ((code >> 6) & 0x3F)),
                    (char)(0x80 | (code & 0x3F))};
    tg_buf_append(out, utf8, 3);
}

int tg_chart_colour(int k) {
    static const int colours[] = {34, 31, 32,
                                  35, 36, 33}; /* blue, red, green, magenta, cyan, yellow */
    return colours[k % (int)TG_COUNT_OF(colours)];
}

typedef struct span {
    double x0, x1, y0, y1;
} span;

static void plot(canvas *c, const tg_series *s, const double *y, const span *in) {
    double sx = (2 * c->columns - 1) / (in->x1 > in->x0 ? in->x1 - in->x0 : 1);
    double sy = (4 * c->rows - 1) / (in->y1 - in->y0);
    for (int i = 1; i < s->n; i++)
        line(c, (s->x[i - 1] - in->x0) * sx, (y[i - 1] - in->y0) * sy, (s->x[i] - in->x0) * sx,
             (y[i] - in->y0) * sy);
}

static void put_cells(tg_buf *out, const canvas *c, int row, bool colours) {
    int now = 0; /* 0: the terminal's own */
    for (int x = 0; x < c->columns; x++) {
        int i = row * c->columns + x;
        int want = colours && c->cells[i] ? tg_chart_colour(c->colour[i]) : 0;
        if (want != now) tg_buf_printf(out, "\033[%dm", now = want);
        put_braille(out, c->cells[i]);
    }
    if (now) tg_buf_puts(out, "\033[0m");
}

static void put_rows(tg_buf *out, const canvas *c, tg_ticks ticks, const span *in, bool colours) {
    double lo = in->y0, hi = in->y1;
    for (int row = 0; row < c->rows; row++) {
        /* label the row whose span holds a tick */
        double top = lo + (hi - lo) * (4.0 * (c->rows - row) - 0.5) / (4 * c->rows - 1);
        double bottom = lo + (hi - lo) * (4.0 * (c->rows - row - 1) - 0.5) / (4 * c->rows - 1);
        char label[32] = "";
        for (int k = 0; k < ticks.n && !label[0]; k++) {
            double value = ticks.first + k * ticks.step;
            if (value > bottom && value <= top)
                tg_tick_text(label, sizeof label, value, ticks.step);
        }
        tg_buf_printf(out, "%10s %s", label, label[0] ? "┤" : "│");
        put_cells(out, c, row, colours);
        tg_buf_putc(out, '\n');
    }
}

/* No more detail than dots: long runs are averaged over the points that share a column. */
static double *smoothed(const tg_series *s, int columns) {
    double *y = tg_alloc_array((size_t)s->n, sizeof *y);
    if (y) tg_series_smooth(s, TG_MAX(1, s->n / columns), y);
    return y;
}

static void grow(span *in, const tg_series *s, const double *y) {
    in->x0 = fmin(in->x0, s->x[0]);
    in->x1 = fmax(in->x1, s->x[s->n - 1]);
    for (int i = 0; i < s->n; i++) {
        in->y0 = fmin(in->y0, y[i]);
        in->y1 = fmax(in->y1, y[i]);
    }
}

/* false: out of memory. */
static bool draw_curves(canvas *c, const tg_series *curves, int n, span *in, tg_ticks *ticks) {
    double **y = tg_alloc_array((size_t)n, sizeof *y);
    bool ok = y != NULL;
    for (int k = 0; ok && k < n; k++) {
        if (curves[k].n < 2) continue;
        ok = (y[k] = smoothed(&curves[k], c->columns)) != NULL;
        if (ok) grow(in, &curves[k], y[k]);
    }
    if (ok) {
        *ticks = tg_ticks_for(in->y0, in->y1, TG_MAX(3, c->rows / 2));
        in->y0 = fmin(in->y0, ticks->first);
        in->y1 = fmax(in->y1, ticks->first + (ticks->n - 1) * ticks->step);
    }
    for (int k = 0; ok && k < n; k++) {
        c->pen = k;
        if (y[k]) plot(c, &curves[k], y[k], in);
    }
    for (int k = 0; y && k < n; k++) tg_free(y[k]);
    tg_free(y);
    return ok;
}

void tg_chart_draw(tg_buf *out, const tg_series *curves, int n, const char *title,
                   const char *x_label, tg_chart_size size) {
    bool any = false;
    for (int k = 0; k < n; k++) any = any || curves[k].n >= 2;
    if (!any) return;
    size_t cells = (size_t)size.columns * (size_t)size.rows;
    canvas c = {tg_alloc(cells), tg_alloc(cells), size.columns, size.rows, 0};
    span in = {(double)INFINITY, -(double)INFINITY, (double)INFINITY, -(double)INFINITY};
    tg_ticks ticks;
    if (!c.cells || !c.colour || !draw_curves(&c, curves, n, &in, &ticks)) {
        out->failed = true;
    } else {
        tg_buf_printf(out, "%11s %s\n", "", title);
        put_rows(out, &c, ticks, &in, size.colours);
        tg_buf_printf(out, "%10s └", "");
        for (int x = 0; x < size.columns; x++) tg_buf_puts(out, "─");
        char last[48];
        int width = snprintf(last, sizeof last, "%s %g", x_label, in.x1);
        tg_buf_printf(out, "\n%12s%-*g%s\n", "", TG_MAX(1, size.columns - width), in.x0, last);
    }
    tg_free(c.cells);
    tg_free(c.colour);
}
