#include "learner/cli/run.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/config/run_config.h"

#include <fcntl.h>
#include <signal.h>
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
static tg_status do_work(tg_run *run, tg_run_work *work, tg_halt_die *die, tg_error *err) {
    tg_halt *halt = NULL;
    tg_status st = tg_halt_create(&halt, parent_fd(), die, err);
    run->opts.halt = halt;
    if (st == TG_OK) st = work(run, err);
    /* for log.txt: on stderr the last line of the command says it, but services read the log alone */
    const char *format = run->opts.ops.log_format;
    if (!format || strcmp(format, "json") != 0) tg_log_set_stderr(TG_LOG_NONE);
    if (st != TG_OK)
        tg_log(st == TG_INTERRUPTED ? TG_LOG_INFO : TG_LOG_ERROR, "train", "%s", err->msg);
    tg_log_set_stderr(TG_LOG_WARN);
    run->opts.halt = NULL;
    tg_halt_destroy(&halt);
    return st;
}

tg_status tg_run_of_config(tg_run_opts opts, const char *config, const tg_args *args,
                           tg_run_work *work, tg_halt_die *die, tg_error *err) {
    if (!config) return tg_fail(err, TG_USAGE, "--config FILE is missing");
    if (!opts.run_dir) return tg_fail(err, TG_USAGE, "--run-dir DIR is missing");
    (void)signal(SIGPIPE, SIG_IGN); /* nobody has to read what is shown; log.txt has it all */
    tg_status st = tg_ops_logging(&opts.ops, err);
    if (st != TG_OK) return st;
    tg_run_config c;
    st = tg_run_config_load(&c, config, args->overrides, args->n_overrides, err);
    if (st != TG_OK) return st;
    tg_train_settings s;
    st = tg_train_settings_read(&s, c.root, false, &c.arena, err);
    if (st == TG_OK) {
        opts.config = &c;
        opts.settings = &s;
        tg_run run;
        st = tg_run_open(&run, &opts, err);
        if (st == TG_OK) {
            st = do_work(&run, work, die, err);
            tg_run_close(&run);
        }
    }
    tg_run_config_fini(&c);
    return st;
}
