/* `textgen-learner train`: the learner process of a run. */
#include "common/config/args.h"
#include "learner/cli/commands.h"
#include "learner/cli/run.h"

#include <stdio.h>

static tg_status train(tg_run *run, tg_error *err) {
    return run->settings->supervised ? tg_train_supervised(run, err) : tg_train_on_policy(run, err);
}

int tg_learner_train(int argc, char **argv, void (*die)(int exit_code)) {
    const char *config = NULL;
    tg_run_opts opts = {0};
    const tg_flag flags[] = {
        TG_RUN_FLAGS(config, opts),
        {"resume", TG_FLAG_SWITCH, &opts.resume, NULL, "Go on from the newest whole checkpoint."},
        {"overwrite", TG_FLAG_SWITCH, &opts.overwrite, NULL,
         "Remove an earlier run from the folder first."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen-learner train",
        .usage = "--config FILE --run-dir DIR --bind ADDRESS [--resume] [key=value…]",
        .summary = "Trains with the workers that connect; `textgen train` starts both.",
        .flags = flags,
        .examples = "  textgen-learner train --config c.yml --run-dir runs/a --bind "
                    "tcp://0.0.0.0:5555 --key learner.key --allow allow.txt\n"};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report("textgen-learner", &err);
    tg_status st = TG_OK;
    if (!args.help) st = tg_run_of_config(opts, config, &args, train, die, &err);
    tg_args_fini(&args);
    if (st == TG_INTERRUPTED) {
        fprintf(stderr,
                "textgen-learner: %s; a checkpoint is in %s/checkpoints: go on with --resume "
                "--run-dir %s\n",
                err.msg, opts.run_dir, opts.run_dir);
        return tg_status_exit_code(st);
    }
    return st == TG_OK ? 0 : tg_args_report("textgen-learner", &err);
}
