/* A curve in text: a frame of braille dots with labelled axes, for the end of a run in a terminal.
 */
#ifndef TG_TRACK_CHART_H
#define TG_TRACK_CHART_H

#include "common/base/buf.h"
#include "learner/track/series.h"

/* Appends `rows` lines of a plot `columns` characters wide (without its labels), then the x axis.
 * Nothing for fewer than two points. */
void tg_chart_draw(tg_buf *out, const tg_series *s, const char *title, const char *x_label,
                   int columns, int rows);

#endif
