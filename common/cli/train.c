/* `textgen train`: check first, then a run folder with the resolved config, then the processes. Until the check has passed nothing
 * is written and nothing is started. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/cli/check.h"
#include "common/cli/command.h"
#include "common/cli/launch.h"
#include "common/cli/run_dir.h"
#include "common/config/args.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char NAME[] = "textgen train";

typedef struct train {
    /* flags */
    const char *run_dir_flag, *config_path, *project, *experiment, *base, *entity;
    int64_t workers, seed; /* INT64_MIN: as the config says */
    bool resume, wandb;
    /* decided from them */
    const char *config; /* owned by config_text, or borrowed from argv */
    char *config_text, *run_dir;
    bool fresh; /* the run folder is made by us */
} train;

/* RL4LMs's own flags: base/project/experiment, going on with whatever is there. */
static bool rl4lms_style(const train *t) {
    return t->config_path || t->project || t->experiment || t->base;
}

static tg_status choose_config(train *t, const tg_args *args, tg_error *err) {
    if (args->n_positional && t->config_path)
        return tg_fail(err, TG_USAGE, "two configs: %s and --config_path %s", args->positional[0],
                       t->config_path);
    t->config = args->n_positional ? args->positional[0] : t->config_path;
    if (t->config) return TG_OK;
    if (!t->resume || !t->run_dir_flag)
        return tg_fail(err, TG_USAGE,
                       "a config is missing; usage: textgen train CONFIG [key=value…] [options]");
    t->config_text = tg_path_join(t->run_dir_flag, "config.json");
    t->config = t->config_text;
    if (!t->config_text) return tg_fail_nomem(err, strlen(t->run_dir_flag));
    if (tg_path_exists(t->config)) return TG_OK;
    return tg_fail(err, TG_NOINPUT, "%s: no run to resume: it has no config.json", t->run_dir_flag);
}

static tg_status choose_run_dir(train *t, tg_error *err) {
    if (t->run_dir_flag && !*t->run_dir_flag) {
        return tg_fail(err, TG_USAGE, "--run-dir: expected a folder, found an empty text");
    } else if (t->run_dir_flag) {
        t->run_dir = tg_strdup(t->run_dir_flag);
    } else if (rl4lms_style(t)) {
        tg_buf dir = {0};
        tg_buf_printf(&dir, "%s/%s/%s", t->base ? t->base : ".",
                      t->project ? t->project : "rl4lm_exps",
                      t->experiment ? t->experiment : "rl4lm_experiment");
        t->run_dir = tg_buf_take(&dir);
    } else if (t->resume) {
        return tg_fail(err, TG_USAGE, "--resume needs the run: --run-dir DIR");
    } else {
        return tg_run_dir_name(t->config, "", &t->run_dir, err);
    }
    return t->run_dir ? TG_OK : tg_fail_nomem(err, 0);
}

static tg_status check_run_dir(train *t, tg_error *err) {
    bool in_use = tg_run_dir_in_use(t->run_dir);
    if (tg_path_exists(t->run_dir) && !tg_path_is_dir(t->run_dir))
        return tg_fail(err, TG_USAGE, "%s: is a file, not a run folder", t->run_dir);
    if (in_use && rl4lms_style(t)) t->resume = true;
    if (in_use && !t->resume)
        return tg_fail(err, TG_USAGE,
                       "%s already holds a run: go on with --resume, or choose another --run-dir",
                       t->run_dir);
    if (!in_use && t->resume) return tg_fail(err, TG_NOINPUT, "%s: no run to resume", t->run_dir);
    t->fresh = !tg_path_exists(t->run_dir);
    return TG_OK;
}

/* The key=value arguments, then --seed and --workers, which win. */
static tg_status check_config(const train *t, const tg_args *args, tg_checked *checked,
                              tg_error *err) {
    char seed[48], workers[48];
    const char **overrides = tg_alloc_array(args->n_overrides + 2, sizeof *overrides);
    if (!overrides) return tg_fail_nomem(err, (args->n_overrides + 2) * sizeof *overrides);
    size_t n = args->n_overrides;
    memcpy(overrides, args->overrides, n * sizeof *overrides);
    snprintf(seed, sizeof seed, "seed=%" PRId64, t->seed);
    snprintf(workers, sizeof workers, "workers=%" PRId64, t->workers);
    if (t->seed != INT64_MIN) overrides[n++] = seed;
    if (t->workers != INT64_MIN) overrides[n++] = workers;
    tg_status st = tg_check_config(checked, t->config, overrides, n, TG_CHECK_TRAIN, err);
    tg_free(overrides);
    return st;
}

static void hint_resume(const train *t) {
    if (tg_run_dir_has_checkpoint(t->run_dir))
        fprintf(stderr,
                "%s: to go on from the last checkpoint: textgen train --resume --run-dir %s\n",
                NAME, t->run_dir);
}

/* An exit code that means wrong input, found before training began. */
static bool refused(int code) {
    return code == tg_status_exit_code(TG_USAGE) || code == tg_status_exit_code(TG_DATA) ||
           code == tg_status_exit_code(TG_NOINPUT) || code == tg_status_exit_code(TG_CONFIG);
}

/* A run that could not go on with the config given now can still go on with its own. */
static void put_back_config(const train *t, const tg_buf *old) {
    tg_buf refused_one = {0};
    tg_error err;
    if (tg_run_dir_write_config(t->run_dir, old, &refused_one, &err) == TG_OK)
        fprintf(stderr, "%s: %s/config.json is what it was before\n", NAME, t->run_dir);
    else
        fprintf(stderr, "%s: %s\n", NAME, err.msg);
    tg_buf_fini(&refused_one);
}

static tg_status run_or_undo(const train *t, const tg_buf *replaced, int *code, tg_error *err) {
    const tg_launch launch = {.name = NAME,
                              .command = "train",
                              .run_dir = t->run_dir,
                              .flags = {t->resume ? "--resume" : NULL}};
    tg_status st = tg_launch_run(&launch, code, err);
    if (st == TG_OK && !*code) return TG_OK;
    const bool wrong = refused(st != TG_OK ? tg_status_exit_code(st) : *code);
    if (t->fresh && wrong) tg_run_dir_discard(t->run_dir);
    if (replaced->len && wrong) put_back_config(t, replaced);
    /* an interrupted learner says so itself; what was refused once would be again */
    if (*code != tg_status_exit_code(TG_INTERRUPTED) && !(t->resume && wrong)) hint_resume(t);
    return st;
}

/* With the folder locked: the config, then the run itself. */
static tg_status train_locked(const train *t, const tg_checked *checked, int *code, tg_error *err) {
    tg_buf replaced = {0};
    tg_status st = tg_run_dir_write_config(t->run_dir, &checked->resolved, &replaced, err);
    if (st != TG_OK) {
        tg_buf_fini(&replaced);
        return st;
    }
    if (checked->notes.len) fputs(checked->notes.data, stderr);
    if (replaced.len)
        fprintf(stderr, "%s: %s/config.json is replaced by the config given now\n", NAME,
                t->run_dir);
    if (t->wandb)
        fprintf(stderr,
                "%s: --log_to_wandb is not built into this version; the .jsonl files in %s hold "
                "the same data\n",
                NAME, t->run_dir);
    st = run_or_undo(t, &replaced, code, err);
    tg_buf_fini(&replaced);
    return st;
}

static tg_status train_run(train *t, const tg_args *args, int *code, tg_error *err) {
    tg_checked checked = {0};
    int lock = -1;
    /* A run outlives those who read its messages: Ctrl-C ends the `tee` beside it as well, a lost ssh its pipe. */
    signal(SIGPIPE, SIG_IGN);
    tg_status st = choose_config(t, args, err);
    if (st == TG_OK) st = choose_run_dir(t, err);
    if (st == TG_OK) st = check_run_dir(t, err);
    if (st == TG_OK) st = check_config(t, args, &checked, err);
    if (st == TG_OK) st = tg_run_dir_lock(t->run_dir, &lock, err);
    if (st == TG_OK) st = train_locked(t, &checked, code, err);
    if (lock >= 0) close(lock);
    tg_checked_fini(&checked);
    return st;
}

int tg_cmd_train(int argc, char **argv) {
    train t = {.workers = INT64_MIN, .seed = INT64_MIN};
    const tg_flag flags[] = {
        {"run-dir", TG_FLAG_STR, &t.run_dir_flag, "DIR",
         "Folder of the run (runs/<config>-<time>)."},
        {"workers", TG_FLAG_INT, &t.workers, "N",
         "Environment workers to start (the config's, 2)."},
        {"seed", TG_FLAG_INT, &t.seed, "S", "Seed of every random draw (the config's, 0)."},
        {"resume", TG_FLAG_SWITCH, &t.resume, NULL,
         "Go on from the newest whole checkpoint of --run-dir."},
        {"config_path", TG_FLAG_STR, &t.config_path, "FILE", "RL4LMs's name for CONFIG."},
        {"project_name", TG_FLAG_STR, &t.project, "NAME",
         "RL4LMs: the run folder is BASE/PROJECT/EXPERIMENT (rl4lm_exps)."},
        {"experiment_name", TG_FLAG_STR, &t.experiment, "NAME",
         "RL4LMs: a run that is there is gone on with (rl4lm_experiment)."},
        {"base_path_to_store_results", TG_FLAG_STR, &t.base, "BASE",
         "RL4LMs: where the folders lie (.)."},
        {"entity_name", TG_FLAG_STR, &t.entity, "NAME",
         "RL4LMs: accepted; only a tracking service would use it."},
        {"log_to_wandb", TG_FLAG_SWITCH, &t.wandb, NULL,
         "RL4LMs: accepted; not built, the .jsonl files hold the data."},
        {0}};
    const tg_args_spec spec = {.name = NAME,
                               .usage = "CONFIG [key=value…] [options]",
                               .summary = "Trains: starts environment workers and a learner on "
                                          "this machine and watches over them.",
                               .flags = flags,
                               .examples =
                                   "  textgen train configs/increasing_numbers.yml\n"
                                   "  textgen train configs/increasing_numbers.yml "
                                   "alg.args.n_epochs=2 --workers 4 --seed 1 --run-dir runs/a\n"
                                   "  textgen train --resume --run-dir runs/a\n"
                                   "  textgen train --config_path configs/increasing_numbers.yml "
                                   "--project_name p --experiment_name e\n",
                               .max_positional = 1};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK) return tg_args_report(NAME, &err);
    int code = 0;
    if (!args.help && train_run(&t, &args, &code, &err) != TG_OK) code = tg_args_report(NAME, &err);
    tg_free(t.config_text);
    tg_free(t.run_dir);
    tg_args_fini(&args);
    return code;
}
