/* `textgen eval`: the metrics of a model on splits of a config's data, without training. The processes are those of a run, in a run folder
 * of its own. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/cli/check.h"
#include "common/cli/command.h"
#include "common/cli/launch.h"
#include "common/cli/run_dir.h"
#include "common/config/args.h"
#include "common/config/option.h"
#include "common/config/run_config.h"
#include "proto/split.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char NAME[] = "textgen eval";

typedef struct eval {
    /* flags */
    const char *run_dir_flag, *model_flag, *splits;
    int64_t workers, seed; /* INT64_MIN: as the config says */
    bool json;
    /* decided from them; owned */
    char *config, *model, *run_dir;
    bool fresh; /* the run folder is made by us */
} eval;

/* A run folder stands for its config and its model. */
static tg_status choose_run(eval *e, const char *folder, tg_error *err) {
    e->config = tg_path_join(folder, "config.json");
    if (!e->model) e->model = tg_path_join(folder, "model");
    if (!e->config || !e->model) return tg_fail_nomem(err, strlen(folder));
    if (!tg_path_exists(e->config))
        return tg_fail(err, TG_NOINPUT,
                       "%s: neither a config nor a run folder: it has no config.json", folder);
    if (e->model_flag || tg_path_exists(e->model)) return TG_OK;
    return tg_fail(err, TG_NOINPUT,
                   "%s: no model/ in it: the newest checkpoint of an unfinished run becomes one by "
                   "`textgen export %s OUT`, then --model OUT; a model folder goes behind --model, "
                   "after a config",
                   folder, folder);
}

static tg_status choose_config(eval *e, const tg_args *args, tg_error *err) {
    const char *given = args->positional[0];
    if (e->model_flag && !(e->model = tg_strdup(e->model_flag))) return tg_fail_nomem(err, 0);
    if (tg_path_is_dir(given)) return choose_run(e, given, err);
    e->config = tg_strdup(given);
    return e->config ? TG_OK : tg_fail_nomem(err, strlen(given));
}

/* Named after the config, or the folder of the run, which may be given as "." */
static tg_status name_run_dir(eval *e, const char *given, tg_error *err) {
    char *folder = tg_path_is_dir(given) ? realpath(given, NULL) : NULL;
    tg_status st = tg_run_dir_name(folder ? folder : given, "-eval", &e->run_dir, err);
    free(folder); /* of the C library */
    return st;
}

static tg_status choose_run_dir(eval *e, const char *given, tg_error *err) {
    if (!e->run_dir_flag) {
        tg_status st = name_run_dir(e, given, err);
        if (st != TG_OK) return st;
    } else if (!(e->run_dir = tg_strdup(e->run_dir_flag))) {
        return tg_fail_nomem(err, strlen(e->run_dir_flag));
    }
    if (!*e->run_dir)
        return tg_fail(err, TG_USAGE, "--run-dir: expected a folder, found an empty text");
    if (tg_path_exists(e->run_dir) && !tg_path_is_dir(e->run_dir))
        return tg_fail(err, TG_USAGE, "%s: is a file, not a run folder", e->run_dir);
    if (tg_run_dir_in_use(e->run_dir))
        return tg_fail(err, TG_USAGE, "%s already holds a run: choose another --run-dir",
                       e->run_dir);
    e->fresh = !tg_path_exists(e->run_dir);
    return TG_OK;
}

/* "alg.policy.args.model_name=…"; supervised configs have another key, and may have begun with a fresh model instead. */
static tg_status override_model(const eval *e, const tg_args *args, tg_buf *model, bool *supervised,
                                tg_error *err) {
    tg_run_config c;
    tg_status st = tg_run_config_load(&c, e->config, args->overrides, args->n_overrides, err);
    if (st != TG_OK) return st;
    const tg_node *id = tg_node_at(c.root, "alg.id");
    *supervised = id && id->kind == TG_NODE_SCALAR && !strcmp(id->text, "supervised");
    tg_run_config_fini(&c);
    tg_buf_puts(model, *supervised ? "alg.model_name=" : "alg.policy.args.model_name=");
    tg_json_string(model, e->model, strlen(e->model));
    return model->failed ? tg_fail_nomem(err, model->len) : TG_OK;
}

/* The key=value arguments, then the flags, which win. */
static tg_status check_config(const eval *e, const tg_args *args, tg_checked *checked,
                              tg_error *err) {
    char seed[48], workers[48];
    tg_buf model = {0};
    bool supervised = false;
    const char **overrides = tg_alloc_array(args->n_overrides + 4, sizeof *overrides);
    if (!overrides) return tg_fail_nomem(err, (args->n_overrides + 4) * sizeof *overrides);
    size_t n = args->n_overrides;
    memcpy(overrides, args->overrides, n * sizeof *overrides);
    snprintf(seed, sizeof seed, "seed=%" PRId64, e->seed);
    snprintf(workers, sizeof workers, "workers=%" PRId64, e->workers);
    if (e->seed != INT64_MIN) overrides[n++] = seed;
    if (e->workers != INT64_MIN) overrides[n++] = workers;
    tg_status st = e->model ? override_model(e, args, &model, &supervised, err) : TG_OK;
    if (st == TG_OK && e->model) overrides[n++] = model.data;
    if (supervised) overrides[n++] = "alg.model_config=null";
    if (st == TG_OK) st = tg_check_config(checked, e->config, overrides, n, TG_CHECK_EVALUATE, err);
    tg_buf_fini(&model);
    tg_free(overrides);
    return st;
}

/* With the folder locked. What ends without a result leaves no folder behind, if it was not there before. */
static tg_status eval_locked(const eval *e, const tg_checked *checked, int *code, tg_error *err) {
    tg_buf replaced = {0};
    tg_status st = tg_run_dir_write_config(e->run_dir, &checked->resolved, &replaced, err);
    tg_buf_fini(&replaced);
    if (st != TG_OK) return st;
    if (checked->notes.len) fputs(checked->notes.data, stderr);
    const tg_launch launch = {.name = NAME,
                              .command = "eval",
                              .run_dir = e->run_dir,
                              .flags = {"--split", e->splits, e->json ? "--json" : NULL}};
    st = tg_launch_run(&launch, code, err);
    if (e->fresh && (st != TG_OK || *code)) tg_run_dir_discard(e->run_dir);
    return st;
}

static tg_status eval_run(eval *e, const tg_args *args, int *code, tg_error *err) {
    tg_checked checked = {0};
    tg_split_list splits;
    int lock = -1;
    signal(SIGPIPE, SIG_IGN);
    tg_status st = tg_split_list_parse(e->splits, &splits, err);
    if (st != TG_OK) tg_error_prefix(err, "--split: ");
    if (st == TG_OK) st = choose_config(e, args, err);
    if (st == TG_OK) st = choose_run_dir(e, args->positional[0], err);
    if (st == TG_OK) st = check_config(e, args, &checked, err);
    if (st == TG_OK) st = tg_run_dir_lock(e->run_dir, &lock, err);
    if (st == TG_OK) st = eval_locked(e, &checked, code, err);
    if (lock >= 0) close(lock);
    tg_checked_fini(&checked);
    return st;
}

int tg_cmd_eval(int argc, char **argv) {
    eval e = {.workers = INT64_MIN, .seed = INT64_MIN, .splits = "val,test"};
    const tg_flag flags[] = {
        {"model", TG_FLAG_STR, &e.model_flag, "NAME",
         "Model folder, or a name as in model_name (the config's; of a run folder the run's)."},
        {"split", TG_FLAG_STR, &e.splits, "LIST", "Of train, val and test (val,test)."},
        {"json", TG_FLAG_SWITCH, &e.json, NULL,
         "Print one JSON object, with the values of every sample."},
        {"run-dir", TG_FLAG_STR, &e.run_dir_flag, "DIR",
         "Where config, log, metrics and predictions go (runs/<config>-eval-<time>)."},
        {"workers", TG_FLAG_INT, &e.workers, "N",
         "Environment workers to start (the config's, 2)."},
        {"seed", TG_FLAG_INT, &e.seed, "S", "Seed of every random draw (the config's, 0)."},
        {0}};
    const tg_args_spec spec = {
        .name = NAME,
        .usage = "CONFIG|RUN [key=value…] [options]",
        .summary = "Evaluates a model without training: answers the prompts of a config's splits "
                   "as its train_evaluation says, and\nprints its metrics. A run folder stands "
                   "for its config and its model.",
        .flags = flags,
        .examples = "  textgen eval configs/increasing_numbers.yml\n"
                    "  textgen eval configs/increasing_numbers.yml --model textgen/tiny --split "
                    "test --json\n"
                    "  textgen eval runs/a train_evaluation.generation_kwargs.num_beams=4\n",
        .min_positional = 1,
        .max_positional = 1};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK) return tg_args_report(NAME, &err);
    int code = 0;
    if (!args.help && eval_run(&e, &args, &code, &err) != TG_OK) code = tg_args_report(NAME, &err);
    tg_free(e.config);
    tg_free(e.model);
    tg_free(e.run_dir);
    tg_args_fini(&args);
    return code;
}
