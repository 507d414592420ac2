/* A curve in text: a frame of braille dots with labelled axes, for the end of a run in a terminal.
 */
#ifndef TG_TRACK_CHART_H
#define TG_TRACK_CHART_H

#include "common/base/buf.h"
#include "learner/track/series.h"

#include <stdbool.h>

typedef struct tg_chart_size {
    int columns, rows; /* of the plot, without its labels */
    bool colours;      /* curve k in the terminal's colour tg_chart_colour(k) */
} tg_chart_size;

/* Appends the title, the rows of a plot of n curves, then the x axis. Nothing when no curve has two points. */
void tg_chart_draw(tg_buf *out, const tg_series *curves, int n, const char *title,
                   const char *x_label, tg_chart_size size);
/* The escape sequence's number, 31 .. 36, that belongs to curve k. */
int tg_chart_colour(int k);

#endif
