/* Series of numbers for curves: read from the run folder's jsonl files, scaled, smoothed. */
#ifndef TG_TRACK_SERIES_H
#define TG_TRACK_SERIES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_series {
    double *x, *y; /* (n), x ascending */
    int n;
} tg_series;

/* Appends key's value from every line of a jsonl file; x is the line's number from 1, or the value
 * of x_key (a number in the line). `in`: name of an inner object that holds the key, or NULL. Lines
 * without a finite number there are left out; a file that is not there gives an empty series. */
tg_status tg_series_read(tg_series *s, const char *path, const char *in, const char *key,
                         const char *x_key, tg_error *err) TG_MUST_CHECK;
void tg_series_fini(tg_series *s);

/* Running mean over `window` points, centred, into out (n). */
void tg_series_smooth(const tg_series *s, int window, double *out);

/* Round numbers around [lo, hi]: first tick, distance, count (2 .. most). Equal ends are widened.
 */
typedef struct tg_ticks {
    double first, step;
    int n;
} tg_ticks;
tg_ticks tg_ticks_for(double lo, double hi, int most);
/* A tick's label: as many digits as the step needs. */
void tg_tick_text(char *out, size_t size, double value, double step);

#endif
