/* Telling folders apart by what is in them: config.json with a model_type is a model, state.json a checkpoint, checkpoints/ a run. */
#include "learner/cli/export_source.h"

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/config/locate.h"
#include "common/nn/family/config_json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* RL4LMs's run folders have a config.json too, without a model_type. */
static bool is_model(const char *folder) {
    tg_config_json c;
    if (tg_config_json_open(&c, folder, "config.json", NULL) != TG_OK) return false;
    bool model = json_is_string(json_object_get(c.root, "model_type"));
    tg_config_json_close(&c);
    return model;
}

/* The newest folder/checkpoints/checkpoint_<k>; owned; NULL: none, or out of memory. */
static char *newest_checkpoint(const char *folder) {
    char *base = tg_path_join(folder, "checkpoints"), name[64];
    DIR *dir = base ? opendir(base) : NULL;
    int64_t best = -1, number;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (tg_str_starts(e->d_name, "checkpoint_") &&
            tg_parse_i64(e->d_name + strlen("checkpoint_"), &number) && number > best)
            best = number;
    if (dir) closedir(dir);
    snprintf(name, sizeof name, "checkpoint_%lld", (long long)best);
    char *path = best < 0 ? NULL : tg_path_join(base, name);
    tg_free(base);
    return path;
}

/* The model_name that the run's config.json names. */
static tg_status base_of_run(const char *run, char **out, tg_error *err) {
    tg_config_json c;
    tg_status st = tg_config_json_open(&c, run, "config.json", err);
    if (st != TG_OK) return st;
    const char *name = NULL;
    if (json_unpack(c.root, "{s:{s:{s:{s:s}}}}", "alg", "policy", "args", "model_name", &name) &&
        json_unpack(c.root, "{s:{s:s}}", "alg", "model_name", &name))
        st = tg_fail(err, TG_DATA, "%s: no alg.policy.args.model_name; name the model with --base",
                     c.path);
    else
        st = tg_model_locate(name, out, err);
    tg_config_json_close(&c);
    return st;
}

/* folder/checkpoints/checkpoint_<k> -> folder. */
static char *run_of_checkpoint(const char *checkpoint) {
    char *up = tg_path_join(checkpoint, "../..");
    return up;
}

static tg_status find_settings(tg_export_source *s, const char *base, tg_error *err) {
    if (base) return tg_model_locate(base, &s->settings, err);
    char *run = run_of_checkpoint(s->folder), *model = run ? tg_path_join(run, "model") : NULL;
    tg_status st = model ? TG_OK : tg_fail_nomem(err, strlen(s->folder));
    if (st == TG_OK && is_model(model)) {
        s->settings = model;
        model = NULL;
    } else if (st == TG_OK) {
        st = base_of_run(run, &s->settings, err);
    }
    tg_free(model);
    tg_free(run);
    return st;
}

static tg_status use_checkpoint(tg_export_source *s, const char *folder, const char *base,
                                tg_error *err) {
    s->folder = tg_strdup(folder);
    s->file = "policy.safetensors";
    if (!s->folder) return tg_fail_nomem(err, strlen(folder));
    if (tg_folder_has(folder, "value.safetensors")) {
        s->critic = tg_strdup(folder);
        s->critic_file = "value.safetensors";
        if (!s->critic) return tg_fail_nomem(err, strlen(folder));
    }
    return find_settings(s, base, err);
}

/* A critic is where an export leaves it. */
static tg_status use_model(tg_export_source *s, const char *folder, tg_error *err) {
    s->folder = tg_strdup(folder);
    s->settings = tg_strdup(folder);
    s->critic = tg_path_join(folder, "value");
    if (!s->folder || !s->settings || !s->critic) return tg_fail_nomem(err, strlen(folder));
    if (!tg_folder_has(s->critic, "value_head.safetensors")) {
        tg_free(s->critic);
        s->critic = NULL;
    }
    return TG_OK;
}

/* What cannot be looked into is left to those who open its files. */
static tg_status use_located(tg_export_source *s, const char *folder, tg_error *err) {
    char *config = tg_path_join(folder, "config.json");
    tg_status st = config ? TG_OK : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK && access(config, F_OK) && errno == ENOENT)
        st = tg_fail(err, TG_NOINPUT,
                     "%s: expected a model (config.json and weights), a run or a checkpoint, found "
                     "none of them",
                     folder);
    tg_free(config);
    return st == TG_OK ? use_model(s, folder, err) : st;
}

tg_status tg_export_source_find(tg_export_source *s, const char *name, const char *base,
                                tg_error *err) {
    *s = (tg_export_source){0};
    char *model = tg_path_join(name, "model"), *checkpoint = NULL, *located = NULL;
    tg_status st;
    if (!model)
        st = tg_fail_nomem(err, strlen(name));
    else if (tg_folder_has(name, "state.json") && tg_folder_has(name, "policy.safetensors"))
        st = use_checkpoint(s, name, base, err);
    else if (is_model(name))
        st = use_model(s, name, err);
    else if (is_model(model))
        st = use_model(s, model, err);
    else if ((checkpoint = newest_checkpoint(name)))
        st = use_checkpoint(s, checkpoint, base, err);
    else if ((st = tg_model_locate(name, &located, err)) == TG_OK)
        st = use_located(s, located, err);
    if (st == TG_OK && base && !s->file)
        st =
            tg_fail(err, TG_USAGE,
                    "--base is for checkpoints: %s is a model with settings of its own", s->folder);
    tg_free(model);
    tg_free(checkpoint);
    tg_free(located);
    if (st != TG_OK) tg_export_source_fini(s);
    return st;
}

void tg_export_source_fini(tg_export_source *s) {
    tg_free(s->settings);
    tg_free(s->folder);
    tg_free(s->critic);
    *s = (tg_export_source){0};
}
