/* See summary.h. */
#include "learner/report/summary.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <string.h>

enum { LAST = 5 };

static double mean_of_last(const double *y, int n) {
    int k = TG_MIN(n, LAST);
    double sum = 0;
    for (int i = n - k; i < n; i++) sum += y[i];
    return k ? sum / k : (double)NAN;
}

static int find_title(const tg_report *r, const char *title) {
    for (int i = 0; i < r->n_titles; i++)
        if (!strcmp(r->titles[i], title)) return i;
    return -1;
}

static void fill(tg_report_row *row, const tg_band *b) {
    if (b->n == 0) return;
    row->length = b->x[b->n - 1];
    row->first = b->mean[0];
    row->last = mean_of_last(b->mean, b->n);
    if (b->n_runs > 1) row->half = mean_of_last(b->hi, b->n) - row->last;
}

tg_status tg_report_summary_make(tg_report_summary *out, const tg_report *r, tg_error *err) {
    static const char reward[] = "reward of an episode", loss[] = "loss";
    int title = find_title(r, reward), kl = find_title(r, "KL to the reference, per token");
    *out = (tg_report_summary){.what = title >= 0 ? reward : loss,
                               .x_name = title >= 0 ? "iteration" : "step"};
    if (title < 0) title = find_title(r, loss);
    out->at = tg_alloc_array((size_t)r->n_groups, sizeof *out->at);
    tg_band *bands = tg_alloc_array((size_t)r->n_groups, sizeof *bands);
    tg_status st = out->at && bands ? TG_OK : tg_fail_nomem(err, 0);
    for (int g = 0; st == TG_OK && g < r->n_groups; g++)
        out->at[g] = (tg_report_row){0, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (st == TG_OK && title >= 0) {
        st = tg_report_bands(r, title, bands, err);
        for (int g = 0; st == TG_OK && g < r->n_groups; g++) {
            fill(&out->at[g], &bands[g]);
            tg_band_fini(&bands[g]);
        }
    }
    if (st == TG_OK && kl >= 0) {
        st = tg_report_bands(r, kl, bands, err);
        for (int g = 0; st == TG_OK && g < r->n_groups; g++) {
            out->at[g].kl = mean_of_last(bands[g].mean, bands[g].n);
            tg_band_fini(&bands[g]);
        }
    }
    tg_free(bands);
    if (st != TG_OK) tg_report_summary_fini(out);
    return st;
}

void tg_report_summary_fini(tg_report_summary *s) {
    tg_free(s->at);
    s->at = NULL;
}
