/* Walks a folder of recordings and prints the table. */
#include "tests/support/replay.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/backend.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

void tg_replay_row(tg_replay_table *t, const char *what, double difference, double tolerance) {
    bool ok = difference <= tolerance; /* false for NaN */
    if (ok)
        t->result->passed++;
    else
        t->result->failed++;
    fprintf(t->out, "  %-34s %10.2e  %8.0e  %s\n", what, difference, tolerance, ok ? "ok" : "FAIL");
}

void tg_replay_note(tg_replay_table *t, const char *what, const char *text) {
    fprintf(t->out, "  %-34s %s\n", what, text);
}

static tg_status replay_case(const char *dir, const tg_replay_opts *opts, tg_replay_table *t,
                             tg_error *err) {
    tg_recording rec;
    tg_backend *be = NULL;
    tg_actor_critic *ac = NULL;
    tg_status st = tg_recording_load(&rec, dir, err);
    if (st == TG_UNSUPPORTED) {
        fprintf(t->out, "  skipped: %s\n", err->msg);
        t->result->skipped++;
        tg_recording_close(&rec);
        return TG_OK;
    }
    if (st == TG_OK) fprintf(t->out, "  %-34s %10s  %8s\n", "quantity", "largest", "allowed");
    if (st == TG_OK) st = tg_backend_open(&be, opts->backend, 0, err);
    if (st == TG_OK) st = tg_recording_networks(&rec, be, opts->models, &ac, err);
    if (st == TG_OK) st = tg_replay_rollout(&rec, ac, t, err);
    if (st == TG_OK) st = tg_replay_update(&rec, ac, t, err);
    tg_actor_critic_destroy(&ac);
    if (be) tg_backend_close(&be);
    tg_recording_close(&rec);
    return st;
}

static void run_case(const char *dir, const char *name, const tg_replay_opts *opts,
                     tg_replay_table *t) {
    tg_error err = {0};
    fprintf(t->out, "%s\n", name);
    t->result->cases++;
    if (replay_case(dir, opts, t, &err) != TG_OK) {
        fprintf(t->out, "  FAIL: %s\n", err.msg);
        t->result->failed++;
    }
}

static bool is_case(const char *dir) {
    char *path = tg_path_join(dir, "recording.json");
    bool yes = path && tg_path_exists(path);
    tg_free(path);
    return yes;
}

tg_status tg_replay(const char *dir, const tg_replay_opts *opts, tg_replay_result *result,
                    tg_error *err) {
    *result = (tg_replay_result){0};
    tg_replay_table t = {.out = opts->out, .result = result};
    if (is_case(dir)) {
        run_case(dir, dir, opts, &t);
        return TG_OK;
    }
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort);
    if (n < 0) return tg_fail_errno(err, TG_NOINPUT, "%s", dir);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        char *path = name[0] == '.' ? NULL : tg_path_join(dir, name);
        if (path && is_case(path) && (!opts->only || !strcmp(opts->only, name)))
            run_case(path, name, opts, &t);
        tg_free(path);
        free(names[i]);
    }
    free(names);
    if (!result->cases)
        return tg_fail(err, TG_NOINPUT, "%s holds no case%s%s (a folder with recording.json)", dir,
                       opts->only ? " named " : "", opts->only ? opts->only : "");
    return TG_OK;
}
