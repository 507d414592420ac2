/* Which numbers of the .jsonl files are drawn. Algorithms name the same quantity after themselves
 * ("ppo/value_loss", "nlpo/value_loss"); the first name that a run has fills the panel. */
#include "learner/track/panels.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

typedef struct source {
    const char *title, *file, *key, *x_key;
    bool of_algorithm; /* the key follows the algorithm's name */
} source;

#define ROLLOUT "rollout_info.jsonl"
#define TRAINING "training_info.jsonl"

static const source sources[] = {
    {"reward of an episode", ROLLOUT, "rollout_info/ep_rew", NULL, false},
    {"KL to the reference, per token", ROLLOUT, "rollout_info/kl_div_mean", NULL, false},
    {"KL coefficient", ROLLOUT, "rollout_info/kl_coeff", NULL, false},
    {"tokens of an episode", ROLLOUT, "rollout_info/ep_lens", NULL, false},
    {"value loss", TRAINING, "value_loss", NULL, true},
    {"explained variance of the value", TRAINING, "explained_variance", NULL, true},
    {"policy gradient loss", TRAINING, "policy_gradient_loss", NULL, true},
    {"entropy loss", TRAINING, "entropy_loss", NULL, true},
    {"KL of the update", TRAINING, "approx_kl", NULL, true},
    {"loss", TRAINING, "supervised/loss", "supervised/step", false},
    {"learning rate", TRAINING, "supervised/learning_rate", "supervised/step", false},
};
static const char *const algorithms[] = {"ppo", "nlpo", "a2c", "trpo"};

static tg_status read_source(tg_panel *p, const source *s, const char *path, tg_error *err) {
    snprintf(p->title, sizeof p->title, "%s", s->title);
    if (!s->of_algorithm) return tg_series_read(&p->series, path, NULL, s->key, s->x_key, err);
    tg_status st = TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(algorithms) && st == TG_OK && p->series.n == 0; i++) {
        char key[96];
        snprintf(key, sizeof key, "%s/%s", algorithms[i], s->key);
        st = tg_series_read(&p->series, path, NULL, key, s->x_key, err);
    }
    return st;
}

/* The metrics that the file's first line names. */
static tg_status read_metrics(tg_panels *p, const char *path, tg_error *err) {
    tg_buf text = {0};
    if (!tg_path_exists(path)) return TG_OK;
    tg_status st = tg_file_read(path, (size_t)1 << 30, &text, err);
    json_t *first =
        st == TG_OK && text.len ? json_loadb(text.data, strcspn(text.data, "\n"), 0, NULL) : NULL;
    tg_buf_fini(&text);
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(first, "metrics"), key, value) {
        if (st != TG_OK || p->n == TG_PANELS_MAX) break;
        tg_panel *panel = &p->at[p->n++];
        snprintf(panel->title, sizeof panel->title, "val: %s", key);
        st = tg_series_read(&panel->series, path, "metrics", key, "epoch", err);
    }
    json_decref(first);
    return st;
}

tg_status tg_panels_read(tg_panels *p, const char *run_dir, tg_error *err) {
    tg_status st = TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(sources) && st == TG_OK; i++) {
        char *path = tg_path_join(run_dir, sources[i].file);
        st = path ? read_source(&p->at[p->n++], &sources[i], path, err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    if (st != TG_OK) return st;
    char *path = tg_path_join(run_dir, "val_split_metrics.jsonl");
    st = path ? read_metrics(p, path, err) : tg_fail_nomem(err, 0);
    tg_free(path);
    return st;
}

void tg_panels_fini(tg_panels *p) {
    for (int i = 0; i < p->n; i++) tg_series_fini(&p->at[i].series);
    p->n = 0;
}
