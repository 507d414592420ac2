/* Drawing with braille: each character is a grid of 2 x 4 dots, U+2800 plus one bit for each dot.
 */
#include "learner/track/chart.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct canvas {
    unsigned char *cells; /* (rows, columns) dot bits */
    int columns, rows;
} canvas;

static void dot(canvas *c, int x, int y) { /* y grows upwards */
    static const unsigned char bit[2][4] = {{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}};
    if (x < 0 || y < 0 || x >= 2 * c->columns || y >= 4 * c->rows) return;
    int row = c->rows - 1 - y / 4;
    c->cells[row * c->columns + x / 2] |= bit[x % 2][y % 4];
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

static void plot(canvas *c, const tg_series *s, const double *y, double lo, double hi) {
    double x0 = s->x[0], x1 = s->x[s->n - 1];
    double sx = (2 * c->columns - 1) / (x1 > x0 ? x1 - x0 : 1), sy = (4 * c->rows - 1) / (hi - lo);
    for (int i = 1; i < s->n; i++)
        line(c, (s->x[i - 1] - x0) * sx, (y[i - 1] - lo) * sy, (s->x[i] - x0) * sx,
             (y[i] - lo) * sy);
}

static void put_rows(tg_buf *out, const canvas *c, tg_ticks ticks, double lo, double hi) {
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
        for (int x = 0; x < c->columns; x++) put_braille(out, c->cells[row * c->columns + x]);
        tg_buf_putc(out, '\n');
    }
}

void tg_chart_draw(tg_buf *out, const tg_series *s, const char *title, const char *x_label,
                   int columns, int rows) {
    if (s->n < 2) return;
    canvas c = {tg_alloc_array((size_t)columns, (size_t)rows), columns, rows};
    double *smooth = tg_alloc_array((size_t)s->n, sizeof *smooth);
    if (!c.cells || !smooth) {
        out->failed = true;
        tg_free(c.cells);
        tg_free(smooth);
        return;
    }
    /* No more detail than dots: long runs are averaged over the points that share a column. */
    tg_series_smooth(s, TG_MAX(1, s->n / columns), smooth);
    double lo = (double)INFINITY, hi = -(double)INFINITY;
    for (int i = 0; i < s->n; i++) {
        lo = fmin(lo, smooth[i]);
        hi = fmax(hi, smooth[i]);
    }
    tg_ticks ticks = tg_ticks_for(lo, hi, TG_MAX(3, rows / 2));
    lo = fmin(lo, ticks.first);
    hi = fmax(hi, ticks.first + (ticks.n - 1) * ticks.step);
    plot(&c, s, smooth, lo, hi);
    tg_buf_printf(out, "%11s %s\n", "", title);
    put_rows(out, &c, ticks, lo, hi);
    tg_buf_printf(out, "%10s └", "");
    for (int x = 0; x < columns; x++) tg_buf_puts(out, "─");
    char last[48];
    int width = snprintf(last, sizeof last, "%s %g", x_label, s->x[s->n - 1]);
    tg_buf_printf(out, "\n%12s%-*g%s\n", "", TG_MAX(1, columns - width), s->x[0], last);
    tg_free(c.cells);
    tg_free(smooth);
}
