/* `textgen-learner train`: the learner process of a run. */
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/config/args.h"
#include "common/config/run_config.h"
#include "learner/cli/commands.h"
#include "learner/train/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pipe whose other end the starting process holds; -1: nobody watches over us. */
static int parent_fd(void) {
    const char *text = getenv("TEXTGEN_PARENT_FD");
    int64_t fd;
    if (!text || !tg_parse_i64(text, &fd) || fd < 0 || fd > INT32_MAX ||
        fcntl((int)fd, F_GETFD) < 0)
        return -1;
    return (int)fd;
}

/* Until there is something to save, a signal simply ends the process. */
static tg_status train_opened(tg_run *run, tg_halt_die *die, tg_error *err) {
    tg_halt *halt = NULL;
    tg_status st = tg_halt_create(&halt, parent_fd(), die, err);
    run->opts.halt = halt;
    if (st == TG_OK)
        st = run->settings->supervised ? tg_train_supervised(run, err)
                                       : tg_train_on_policy(run, err);
    /* for log.txt: on stderr the last line of the command says it, but services read the log alone */
    const char *format = run->opts.ops.log_format;
    if (!format || strcmp(format, "json") != 0) tg_log_set_stderr(TG_LOG_NONE);
    if (st != TG_OK)
        tg_log(st == TG_INTERRUPTED ? TG_LOG_INFO : TG_LOG_ERROR, "train", "%s", err->msg);
    tg_log_set_stderr(TG_LOG_WARN);
    tg_halt_destroy(&halt);
    return st;
}

static tg_status train(tg_run_opts opts, const char *config, const tg_args *args, tg_halt_die *die,
                       tg_error *err) {
    tg_run_config c;
    tg_status st = tg_run_config_load(&c, config, args->overrides, args->n_overrides, err);
    if (st != TG_OK) return st;
    tg_train_settings s;
    st = tg_train_settings_read(&s, c.root, false, &c.arena, err);
    if (st == TG_OK) {
        opts.config = &c;
        opts.settings = &s;
        tg_run run;
        st = tg_run_open(&run, &opts, err);
        if (st == TG_OK) {
            st = train_opened(&run, die, err);
            tg_run_close(&run);
        }
    }
    tg_run_config_fini(&c);
    return st;
}

int tg_learner_train(int argc, char **argv, void (*die)(int exit_code)) {
    const char *config = NULL;
    tg_run_opts opts = {0};
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &config, "FILE", "The config."},
        {"run-dir", TG_FLAG_STR, &opts.run_dir, "DIR", "Where logs, checkpoints and the model go."},
        {"bind", TG_FLAG_STR, &opts.bind, "ADDRESS",
         "Workers connect here, such as ipc:///tmp/pool."},
        {"connect", TG_FLAG_STR, &opts.connect, "ADDRESS",
         "Workers to connect to, separated by commas."},
        TG_SECURITY_FLAGS(opts.security),
        TG_OPS_FLAGS(opts.ops),
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
    if (!args.help) {
        signal(SIGPIPE, SIG_IGN); /* nobody has to read the progress line; log.txt has it all */
        if (!config)
            st = tg_fail(&err, TG_USAGE, "--config FILE is missing");
        else if (!opts.run_dir)
            st = tg_fail(&err, TG_USAGE, "--run-dir DIR is missing");
        else if ((st = tg_ops_logging(&opts.ops, &err)) == TG_OK)
            st = train(opts, config, &args, die, &err);
    }
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
