/* textgen health: one probe, for container health checks and scripts. Exit 0 says yes, 69 says no. */
#include "common/cli/health.h"

#include "common/base/file.h"
#include "common/config/args.h"
#include "common/net/http_get.h"

#include <string.h>

static tg_status probe(const char *http, const char *page, int timeout_ms, bool quiet,
                       tg_error *err) {
    tg_buf body = {0};
    int code = 0;
    tg_status st = tg_http_get(http, page, timeout_ms, &code, &body, err);
    if (st == TG_OK && code != 200)
        st = tg_fail(err, TG_UNAVAILABLE, "%s%s: %.*s", http, page,
                     (int)strcspn(body.data ? body.data : "", "\n"), body.data ? body.data : "");
    if (st == TG_OK && !quiet) st = tg_stdout_write(&body, err);
    tg_buf_fini(&body);
    return st;
}

int tg_cmd_health(int argc, char **argv) {
    const char *http = "127.0.0.1:9601";
    bool live = false, startup = false, quiet = false;
    int64_t timeout_ms = 2000;
    const tg_flag flags[] = {
        {"http", TG_FLAG_STR, &http, "HOST:PORT", "The process's --http address (127.0.0.1:9601)."},
        {"live", TG_FLAG_SWITCH, &live, NULL,
         "Ask whether its loop turns, not whether it can work."},
        {"startup", TG_FLAG_SWITCH, &startup, NULL, "Ask whether it has been ready once."},
        {"timeout-ms", TG_FLAG_INT, &timeout_ms, "MS", "How long to wait (2000)."},
        {"quiet", TG_FLAG_SWITCH, &quiet, NULL, "Only the exit code."},
        {0}};
    const tg_args_spec spec = {
        "textgen health",
        "[--http HOST:PORT] [--live | --startup]",
        "Asks a textgen-env, textgen-broker or textgen-learner whether it can "
        "do work now. Exit 0: yes, 69: no.",
        flags,
        "  textgen health --http 127.0.0.1:9601\n"
        "  textgen health --http 9601 --live --timeout-ms 500\n",
        0,
        0,
        true};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        if (timeout_ms < 1 || timeout_ms > 600000)
            st = tg_fail(&err, TG_USAGE, "--timeout-ms is 1 to 600000");
        else if (live && startup)
            st = tg_fail(&err, TG_USAGE, "give --live or --startup, not both");
        else
            st = probe(http,
                       live      ? "/livez"
                       : startup ? "/startupz"
                                 : "/readyz",
                       (int)timeout_ms, quiet, &err);
    }
    tg_args_fini(&args);
    if (st == TG_OK) return 0;
    return quiet ? tg_status_exit_code(err.status) : tg_args_report(spec.name, &err);
}
