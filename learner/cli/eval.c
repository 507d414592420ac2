/* `textgen-learner eval`: the learner process of an evaluation alone. */
#include "common/config/args.h"
#include "learner/cli/commands.h"
#include "learner/cli/run.h"
#include "learner/train/evaluate.h"

int tg_learner_eval(int argc, char **argv, void (*die)(int exit_code)) {
    const char *config = NULL, *splits = "val,test";
    tg_run_opts opts = {0};
    tg_eval_opts evaluation = {0};
    const tg_flag flags[] = {
        TG_RUN_FLAGS(config, opts),
        {"split", TG_FLAG_STR, &splits, "LIST", "Of train, val and test (val,test)."},
        {"json", TG_FLAG_SWITCH, &evaluation.json, NULL,
         "Print one JSON object, with the values of every sample."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen-learner eval",
        .usage = "--config FILE --run-dir DIR --bind ADDRESS [--split LIST] [key=value…]",
        .summary = "Evaluates a model with the workers that connect; `textgen eval` starts both.",
        .flags = flags,
        .examples = "  textgen-learner eval --config c.yml --run-dir runs/a --bind "
                    "tcp://0.0.0.0:5555 --key learner.key --allow allow.txt\n"};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report("textgen-learner", &err);
    tg_status st = TG_OK;
    if (!args.help) {
        opts.evaluation = &evaluation;
        st = tg_split_list_parse(splits, &evaluation.splits, &err);
        if (st != TG_OK)
            tg_error_prefix(&err, "--split: ");
        else
            st = tg_run_of_config(opts, config, &args, tg_run_evaluate, die, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report("textgen-learner", &err);
}
