/* The report as one HTML file: summary table and curves with bands, readable without a network. */
#ifndef TG_REPORT_PAGE_H
#define TG_REPORT_PAGE_H

#include "common/base/buf.h"
#include "learner/report/runs.h"

/* Appends the whole document. The curves are SVG in the page; a short script shows the values under
 * the pointer and hides a group when its name is clicked; without it the page says the same. */
tg_status tg_report_page(const tg_report *r, tg_buf *out, tg_error *err) TG_MUST_CHECK;

#endif
