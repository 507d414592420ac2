/* The quantities worth a curve, and where a run folder keeps them: what curves.svg and `textgen report` draw. */
#ifndef TG_TRACK_PANELS_H
#define TG_TRACK_PANELS_H

#include "common/base/status.h"
#include "learner/track/series.h"

enum { TG_PANELS_MAX = 32 };

typedef struct tg_panel {
    char title[96];
    tg_series series; /* empty: the run does not have it */
} tg_panel;

/* All panels of one run folder, always in the same order: the fixed ones first, then one for each
 * metric of the validation split. */
typedef struct tg_panels {
    tg_panel at[TG_PANELS_MAX];
    int n;
} tg_panels;

/* A file that is not there leaves its panels empty. Zero-initialise; fini also after a failure. */
tg_status tg_panels_read(tg_panels *p, const char *run_dir, tg_error *err) TG_MUST_CHECK;
void tg_panels_fini(tg_panels *p);

#endif
