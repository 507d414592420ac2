/* Names for the groups of a report: the settings in which their configs differ. */
#ifndef TG_REPORT_LABEL_H
#define TG_REPORT_LABEL_H

#include "learner/report/runs.h"

tg_status tg_report_label(tg_report *r, tg_error *err) TG_MUST_CHECK;

#endif
