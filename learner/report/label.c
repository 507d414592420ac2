/* Configs are walked together: a setting that is not the same everywhere becomes part of the label, by
 * the last part of its path ("learning_rate 1e-05"), at most four of them. */
#include "learner/report/label.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETTINGS = 4 };

typedef struct walk {
    tg_report *r;
    int *first; /* (n_groups) a run of each */
    int shown;
} walk;

static void add(tg_report_group *g, const char *name, const char *value) {
    size_t used = strlen(g->label);
    snprintf(g->label + used, sizeof g->label - used, "%s%s%s%s", used ? ", " : "", name,
             *name ? " " : "", value);
}

static void value_text(char *out, size_t size, const json_t *v) {
    if (json_is_string(v)) {
        snprintf(out, size, "%s", json_string_value(v));
        return;
    }
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    snprintf(out, size, "%s", text ? text : "not given");
    free(text); /* jansson's */
}

/* One setting, each group's value of it in values (NULL: not there). */
static void look(walk *w, const char *name, const json_t **values);

static void look_inside(walk *w, const json_t **values) {
    int n = w->r->n_groups;
    const json_t **inner = tg_alloc_array((size_t)n, sizeof *inner);
    if (!inner) return; /* labels are a convenience */
    for (int g = 0; g < n; g++) {
        const char *key;
        json_t *unused;
        json_object_foreach((json_t *)values[g], key, unused) {
            bool seen = false; /* in an earlier group: looked at already */
            for (int k = 0; k < g && !seen; k++) seen = json_object_get(values[k], key) != NULL;
            if (seen) continue;
            for (int k = 0; k < n; k++) inner[k] = json_object_get(values[k], key);
            look(w, key, inner);
        }
    }
    tg_free(inner);
}

static void look(walk *w, const char *name, const json_t **values) {
    int n = w->r->n_groups;
    bool same = true, objects = false;
    for (int g = 0; g < n; g++) {
        same = same && (values[g] == values[0] ||
                        (values[g] && values[0] && json_equal(values[g], values[0])));
        objects = objects || json_is_object(values[g]);
    }
    if (same) return;
    if (objects) {
        look_inside(w, values);
        return;
    }
    if (w->shown++ >= MOST_SETTINGS) return;
    for (int g = 0; g < n; g++) {
        char text[80];
        value_text(text, sizeof text, values[g]);
        add(&w->r->groups[g], !strcmp(name, "id") ? "" : name, text);
    }
}

/* The algorithm and model, where nothing tells groups apart. */
static void plain_label(tg_report_group *g, const tg_report_run *run, bool with_folder) {
    const json_t *alg = json_object_get(run->config, "alg");
    const char *id = json_string_value(json_object_get(alg, "id"));
    const json_t *args = json_object_get(json_object_get(alg, "policy"), "args");
    const char *model = json_string_value(json_object_get(args, "model_name"));
    if (with_folder || !id)
        add(g, "", run->dir);
    else
        add(g, model ? id : "", model ? model : id);
}

tg_status tg_report_label(tg_report *r, tg_error *err) {
    walk w = {.r = r, .first = tg_alloc_array((size_t)r->n_groups, sizeof(int))};
    const json_t **roots = tg_alloc_array((size_t)r->n_groups, sizeof *roots);
    if (!w.first || !roots) {
        tg_free(w.first);
        tg_free(roots);
        return tg_fail_nomem(err, (size_t)r->n_groups * sizeof *roots);
    }
    for (int i = r->n_runs - 1; i >= 0; i--) {
        w.first[r->runs[i].group] = i;
        roots[r->runs[i].group] = r->runs[i].config;
    }
    look_inside(&w, roots);
    for (int g = 0; g < r->n_groups; g++)
        if (!r->groups[g].label[0])
            plain_label(&r->groups[g], &r->runs[w.first[g]], r->n_groups > 1);
    tg_free(w.first);
    tg_free(roots);
    return TG_OK;
}
