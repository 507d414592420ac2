/* See report.h. The page is written first: a terminal that goes away loses nothing. */
#include "learner/cli/report.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/config/args.h"
#include "learner/report/page.h"
#include "learner/report/summary.h"
#include "learner/track/chart.h"

#include <stdio.h>
#include <unistd.h>

static void put_legend(tg_buf *b, const tg_report *r, bool colours) {
    for (int g = 0; g < r->n_groups; g++) {
        if (colours) tg_buf_printf(b, "\033[%dm", tg_chart_colour(g));
        tg_buf_printf(b, "  ━ %s", r->groups[g].label);
        if (colours) tg_buf_puts(b, "\033[0m");
        tg_buf_printf(b, " (%d run%s)\n", r->groups[g].n_runs, r->groups[g].n_runs > 1 ? "s" : "");
    }
    tg_buf_putc(b, '\n');
}

/* All groups in one plot where colours tell them apart, else one plot each. */
static void put_charts(tg_buf *b, const tg_report *r, const char *title, const tg_band *bands,
                       const char *x_name, bool colours) {
    tg_chart_size size = {.columns = 64, .rows = 10, .colours = colours};
    tg_series *curves = tg_alloc_array((size_t)r->n_groups, sizeof *curves);
    if (!curves) {
        b->failed = true;
        return;
    }
    for (int g = 0; g < r->n_groups; g++)
        curves[g] = (tg_series){bands[g].x, bands[g].mean, bands[g].n};
    if (colours) {
        tg_chart_draw(b, curves, r->n_groups, title, x_name, size);
    } else {
        for (int g = 0; g < r->n_groups; g++) {
            char text[300];
            snprintf(text, sizeof text, "%s%s%s", title, r->n_groups > 1 ? ": " : "",
                     r->n_groups > 1 ? r->groups[g].label : "");
            tg_chart_draw(b, &curves[g], 1, text, x_name, size);
        }
    }
    tg_buf_putc(b, '\n');
    tg_free(curves);
}

static void put_numbers(tg_buf *b, const tg_report *r, const tg_report_summary *s) {
    tg_buf_printf(b, "%s\n%12s %12s %12s %12s %6s  %s\n", s->what, "first", "last five", "+- 95%",
                  "KL", "runs", "");
    for (int g = 0; g < r->n_groups; g++)
        tg_buf_printf(b, "%12.4g %12.4g %12.4g %12.4g %6d  %s\n", s->at[g].first, s->at[g].last,
                      s->at[g].half, s->at[g].kl, r->groups[g].n_runs, r->groups[g].label);
}

static tg_status show(const tg_report *r, bool colours, tg_error *err) {
    tg_report_summary rows;
    tg_status st = tg_report_summary_make(&rows, r, err);
    if (st != TG_OK) return st;
    tg_buf b = {0};
    put_legend(&b, r, colours);
    tg_band *bands = tg_alloc_array((size_t)r->n_groups, sizeof *bands);
    if (!bands) st = tg_fail_nomem(err, (size_t)r->n_groups * sizeof *bands);
    for (int i = 0; i < r->n_titles && st == TG_OK; i++) {
        st = tg_report_bands(r, i, bands, err);
        if (st != TG_OK) break;
        put_charts(&b, r, r->titles[i], bands, rows.x_name, colours);
        for (int g = 0; g < r->n_groups; g++) tg_band_fini(&bands[g]);
    }
    put_numbers(&b, r, &rows);
    tg_free(bands);
    if (st == TG_OK && b.failed) st = tg_fail_nomem(err, b.len);
    if (st == TG_OK) st = tg_stdout_write(&b, err);
    tg_buf_fini(&b);
    tg_report_summary_fini(&rows);
    return st;
}

static tg_status write_page(const tg_report *r, const char *path, tg_error *err) {
    tg_buf b = {0};
    tg_status st = tg_report_page(r, &b, err);
    if (st == TG_OK) st = tg_file_write_atomic(path, b.data, b.len, err);
    tg_buf_fini(&b);
    return st;
}

static tg_status report(const tg_args *args, const char *out, bool each, bool plots,
                        tg_error *err) {
    tg_report r;
    tg_status st = tg_report_open(&r, (const char *const *)args->positional,
                                  (int)args->n_positional, each, err);
    char *path = NULL;
    if (st == TG_OK) {
        path = out             ? tg_strdup(out)
               : r.n_runs == 1 ? tg_path_join(r.runs[0].dir, "report.html")
                               : tg_strdup("report.html");
        if (!path) st = tg_fail_nomem(err, 0);
    }
    if (st == TG_OK) st = write_page(&r, path, err);
    if (st == TG_OK && plots) st = show(&r, isatty(STDOUT_FILENO), err);
    if (st == TG_OK) fprintf(stderr, "page: %s\n", path);
    tg_free(path);
    tg_report_close(&r);
    return st;
}

int tg_cmd_report(int argc, char **argv) {
    const char *out = NULL;
    bool each = false, quiet = false;
    const tg_flag flags[] = {
        {"out", TG_FLAG_STR, &out, "FILE",
         "The page (RUN/report.html of a single run, else ./report.html)."},
        {"each", TG_FLAG_SWITCH, &each, NULL,
         "A curve for every run, also where runs differ only in their seed."},
        {"quiet", TG_FLAG_SWITCH, &quiet, NULL, "Only the page, no plots on the terminal."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen report",
        .usage = "RUN [RUN…] [--out FILE] [--each] [--quiet]",
        .summary =
            "Draws the learning curves of runs: reward, KL, entropy, value error, lengths, "
            "metrics.\n"
            "Runs whose configs differ only in the seed become one curve with a 95 % confidence "
            "band.",
        .flags = flags,
        .examples = "  textgen report runs/first\n"
                    "  textgen report runs/ppo-seed* runs/nlpo-seed* --out compare.html\n",
        .max_positional = -1,
        .no_overrides = true};
    tg_error err = {0};
    tg_args args;
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report(spec.name, &err);
    tg_status st = TG_OK;
    if (!args.help)
        st = args.n_positional
                 ? report(&args, out, each, !quiet, &err)
                 : tg_fail(&err, TG_USAGE, "no run is given: name the folder of a run (--run-dir)");
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
