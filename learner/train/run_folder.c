/* The run folder at the start of a run: created, kept for a resume, or cleared of an earlier run when that is wanted. */
#include "learner/train/run.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

static const char *const own_folders[] = {"checkpoints", "model"};

static bool is_prediction(const char *name) {
    return tg_str_starts(name, "epoch_") && tg_str_ends(name, "_split_predictions.json");
}

/* Name of something a run has left there; NULL: nothing. */
static const char *earlier_run(const char *run_dir) {
    const char *found = NULL;
    for (int i = 0; i < TG_ARTIFACTS && !found; i++) {
        char *path = tg_path_join(run_dir, tg_artifact_names[i]);
        if (path && tg_path_exists(path)) found = tg_artifact_names[i];
        tg_free(path);
    }
    for (int i = 0; i < 2 && !found; i++) {
        char *path = tg_path_join(run_dir, own_folders[i]);
        if (path && tg_path_exists(path)) found = own_folders[i];
        tg_free(path);
    }
    return found;
}

static tg_status remove_predictions(const char *run_dir, tg_error *err) {
    DIR *dir = opendir(run_dir);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s", run_dir);
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (!is_prediction(e->d_name)) continue;
        char *path = tg_path_join(run_dir, e->d_name);
        if (!path)
            st = tg_fail_nomem(err, strlen(run_dir));
        else if (unlink(path) != 0)
            st = tg_fail_errno(err, TG_IO, "%s: cannot be removed", path);
        tg_free(path);
    }
    closedir(dir);
    return st;
}

static tg_status clear(const char *run_dir, tg_error *err) {
    tg_status st = tg_artifacts_truncate(run_dir, (const int64_t[TG_ARTIFACTS]){0}, err);
    for (int i = 0; st == TG_OK && i < 2; i++) {
        char *path = tg_path_join(run_dir, own_folders[i]);
        st = path ? tg_dir_remove(path, err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    return st == TG_OK ? remove_predictions(run_dir, err) : st;
}

/* Whether a process has written `name` to rename it at the end (tg_file_write_atomic, tg_dir_create_beside). */
static bool is_unfinished(const char *name) {
    const char *tmp = NULL;
    for (const char *at = name; (at = strstr(at, ".tmp.")); at++) tmp = at + strlen(".tmp.");
    return tmp && *tmp && tmp[strspn(tmp, "0123456789.")] == 0;
}

/* In the run's folder: only what a run writes there. */
static bool is_own(const char *name) {
    static const char *const begins[] = {"model.", "config.json.", "curves.svg.", "epoch_"};
    for (size_t i = 0; i < TG_COUNT_OF(begins); i++)
        if (tg_str_starts(name, begins[i])) return true;
    return false;
}

/* What a learner that was killed while it wrote has left in `folder`. */
static tg_status remove_unfinished(const char *folder, bool all_own, tg_error *err) {
    DIR *dir = opendir(folder);
    if (!dir) return TG_OK; /* no model yet */
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (!is_unfinished(e->d_name) || (!all_own && !is_own(e->d_name))) continue;
        char *path = tg_path_join(folder, e->d_name);
        if (!path)
            st = tg_fail_nomem(err, 0);
        else
            st = tg_path_is_dir(path) ? tg_dir_remove(path, err) : tg_file_remove(path, err);
        tg_free(path);
    }
    closedir(dir);
    return st;
}

static tg_status remove_all_unfinished(const char *run_dir, tg_error *err) {
    char *model = tg_path_join(run_dir, "model");
    tg_status st =
        model ? remove_unfinished(run_dir, false, err) : tg_fail_nomem(err, strlen(run_dir));
    if (st == TG_OK) st = remove_unfinished(model, true, err);
    tg_free(model);
    return st;
}

tg_status tg_run_folder_prepare(const char *run_dir, bool resume, bool overwrite, tg_error *err) {
    tg_status st = tg_dir_create(run_dir, err);
    if (st == TG_OK) st = remove_all_unfinished(run_dir, err);
    if (st != TG_OK || resume) return st;
    const char *found = earlier_run(run_dir);
    if (!found) return TG_OK;
    if (overwrite) return clear(run_dir, err);
    return tg_fail(err, TG_CONFIG,
                   "%s already holds a run (%s): go on with --resume, start anew with --overwrite, "
                   "or use another "
                   "--run-dir",
                   run_dir, found);
}
