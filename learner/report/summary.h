/* A line of numbers for each group of runs: where the reward (or, of supervised runs, the loss) began and
 * where it ended. */
#ifndef TG_REPORT_SUMMARY_H
#define TG_REPORT_SUMMARY_H

#include "learner/report/runs.h"

typedef struct tg_report_row {
    double length;            /* x of the last point */
    double first, last, half; /* last: mean of the last five points; half: of the band there, NaN
                                 for one run */
    double kl;                /* to the reference, mean of the last five points; NaN: none */
} tg_report_row;

typedef struct tg_report_summary {
    tg_report_row *at;         /* (n_groups), owned */
    const char *what, *x_name; /* static: the quantity, and what x counts */
} tg_report_summary;

tg_status tg_report_summary_make(tg_report_summary *out, const tg_report *r,
                                 tg_error *err) TG_MUST_CHECK;
void tg_report_summary_fini(tg_report_summary *s);

#endif
