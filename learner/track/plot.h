/* One panel of curves as SVG elements: title, axes, grid, lines and the bands around them. */
#ifndef TG_TRACK_PLOT_H
#define TG_TRACK_PLOT_H

#include "common/base/buf.h"

enum { TG_PLOT_W = 420, TG_PLOT_H = 230 };

typedef struct tg_curve {
    const double *x, *y;   /* (n), x ascending */
    const double *lo, *hi; /* (n) edges of the band, or NULL */
    int n;
    const char *line, *band; /* classes of their elements */
} tg_curve;

/* The rules for the elements' looks, without colours of lines and bands. */
extern const char tg_plot_style[];

/* At that place of the picture. Curves of fewer than two points are left out. */
void tg_plot_draw(tg_buf *b, const char *title, const tg_curve *curves, int n, int left, int top);
/* For text between tags or in a quoted attribute. */
void tg_plot_escaped(tg_buf *b, const char *text);

#endif
