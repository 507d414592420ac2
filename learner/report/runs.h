/* The runs of a report, put into groups: runs whose configs differ in nothing but the seed are one group,
 * and each quantity becomes one curve with a band.
 *
 *     tg_report r;
 *     tg_report_open(&r, dirs, n, false, err);
 *     r.groups[g].label, tg_report_panel(&r, i, bands, err) ...
 *     tg_report_close(&r); */
#ifndef TG_REPORT_RUNS_H
#define TG_REPORT_RUNS_H

#include "common/base/status.h"
#include "learner/report/band.h"
#include "learner/track/panels.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct tg_report_run {
    const char *dir; /* borrowed */
    json_t *config;  /* config.json without the seed; NULL: the folder has none */
    char seed[32];   /* "" when unknown */
    tg_panels panels;
    int group;
} tg_report_run;

typedef struct tg_report_group {
    char label[160]; /* what tells it from the other groups */
    int n_runs;
} tg_report_group;

typedef struct tg_report {
    tg_report_run *runs;
    int n_runs;
    tg_report_group *groups;
    int n_groups;
    char titles[TG_PANELS_MAX][96]; /* of the quantities that some run has, in drawing order */
    int n_titles;
} tg_report;

/* each: every run is a group of its own. TG_DATA: a folder that holds no run. Close also after a
 * failure. */
tg_status tg_report_open(tg_report *r, const char *const *dirs, int n, bool each,
                         tg_error *err) TG_MUST_CHECK;
void tg_report_close(tg_report *r);

/* The bands of quantity `title`, one for each group, in the caller's array (n_groups). */
tg_status tg_report_bands(const tg_report *r, int title, tg_band *bands,
                          tg_error *err) TG_MUST_CHECK;

#endif
