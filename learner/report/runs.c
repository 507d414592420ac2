/* See runs.h. */
#include "learner/report/runs.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "learner/report/label.h"

#include <stdio.h>
#include <string.h>

static tg_status read_config(tg_report_run *run, tg_error *err) {
    char *path = tg_path_join(run->dir, "config.json");
    if (!path) return tg_fail_nomem(err, 0);
    tg_status st = TG_OK;
    if (tg_path_exists(path)) {
        json_error_t e;
        run->config = json_load_file(path, 0, &e);
        if (!run->config) st = tg_fail(err, TG_DATA, "%s: line %d: %s", path, e.line, e.text);
    }
    tg_free(path);
    const json_t *seed = json_object_get(run->config, "seed");
    if (json_is_integer(seed))
        snprintf(run->seed, sizeof run->seed, "%lld", (long long)json_integer_value(seed));
    if (run->config) json_object_del(run->config, "seed");
    return st;
}

static tg_status open_run(tg_report_run *run, const char *dir, tg_error *err) {
    run->dir = dir;
    if (!tg_path_is_dir(dir))
        return tg_fail(err, TG_NOINPUT, "%s: is no folder; give the folders of runs (--run-dir)",
                       dir);
    tg_status st = read_config(run, err);
    if (st == TG_OK) st = tg_panels_read(&run->panels, dir, err);
    for (int i = 0; st == TG_OK && i < run->panels.n; i++)
        if (run->panels.at[i].series.n) return TG_OK;
    if (st != TG_OK) return st;
    return tg_fail(err, TG_DATA,
                   "%s: holds no run: rollout_info.jsonl, training_info.jsonl and "
                   "val_split_metrics.jsonl are missing or empty",
                   dir);
}

static int find_group(const tg_report *r, int run) {
    for (int i = 0; i < run; i++)
        if (r->runs[i].config && r->runs[run].config &&
            json_equal(r->runs[i].config, r->runs[run].config))
            return r->runs[i].group;
    return -1;
}

static void make_groups(tg_report *r, bool each) {
    for (int i = 0; i < r->n_runs; i++) {
        int group = each ? -1 : find_group(r, i);
        if (group < 0) group = r->n_groups++;
        r->runs[i].group = group;
        r->groups[group].n_runs++;
    }
}

static void add_titles(tg_report *r, const tg_panels *p) {
    for (int i = 0; i < p->n; i++) {
        if (!p->at[i].series.n || r->n_titles == TG_PANELS_MAX) continue;
        bool known = false;
        for (int k = 0; k < r->n_titles && !known; k++)
            known = !strcmp(r->titles[k], p->at[i].title);
        if (!known) memcpy(r->titles[r->n_titles++], p->at[i].title, sizeof r->titles[0]);
    }
}

tg_status tg_report_open(tg_report *r, const char *const *dirs, int n, bool each, tg_error *err) {
    *r = (tg_report){0};
    r->runs = tg_alloc_array((size_t)n, sizeof *r->runs);
    r->groups = tg_alloc_array((size_t)n, sizeof *r->groups);
    if (!r->runs || !r->groups) return tg_fail_nomem(err, (size_t)n * sizeof *r->runs);
    tg_status st = TG_OK;
    for (; st == TG_OK && r->n_runs < n; r->n_runs++)
        st = open_run(&r->runs[r->n_runs], dirs[r->n_runs], err);
    if (st != TG_OK) return st;
    make_groups(r, each);
    for (int i = 0; i < n; i++) add_titles(r, &r->runs[i].panels);
    return tg_report_label(r, err);
}

void tg_report_close(tg_report *r) {
    for (int i = 0; i < r->n_runs; i++) {
        json_decref(r->runs[i].config);
        tg_panels_fini(&r->runs[i].panels);
    }
    tg_free(r->runs);
    tg_free(r->groups);
    *r = (tg_report){0};
}

static const tg_series *find_series(const tg_panels *p, const char *title) {
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->at[i].title, title) && p->at[i].series.n) return &p->at[i].series;
    return NULL;
}

tg_status tg_report_bands(const tg_report *r, int title, tg_band *bands, tg_error *err) {
    const tg_series **of_group = tg_alloc_array((size_t)r->n_runs, sizeof *of_group);
    if (!of_group) return tg_fail_nomem(err, (size_t)r->n_runs * sizeof *of_group);
    for (int g = 0; g < r->n_groups; g++) bands[g] = (tg_band){0};
    tg_status st = TG_OK;
    for (int g = 0; g < r->n_groups && st == TG_OK; g++) {
        int n = 0;
        for (int i = 0; i < r->n_runs; i++) {
            const tg_series *s =
                r->runs[i].group == g ? find_series(&r->runs[i].panels, r->titles[title]) : NULL;
            if (s) of_group[n++] = s;
        }
        st = tg_band_make(&bands[g], of_group, n, err);
    }
    for (int g = 0; g < r->n_groups && st != TG_OK; g++) tg_band_fini(&bands[g]);
    tg_free(of_group);
    return st;
}
