/* textgen top: asks every address, prints the table, again and again; rates are differences of two polls. */
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/cli/health.h"
#include "common/cli/top_rows.h"
#include "common/config/args.h"
#include "common/net/http_get.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 2000 };

typedef struct top {
    const char *const *addresses;
    size_t n;
    int64_t interval_ms;
    bool once, live; /* live: on a terminal */
} top;

/* Every address has a row, whether it answers or not. */
static tg_status poll_all(const top *t, tg_top_rows *out, size_t *answered, tg_error *err) {
    *answered = 0;
    memset(out, 0, sizeof *out);
    tg_status st = TG_OK;
    for (size_t i = 0; st == TG_OK && i < t->n; i++) {
        tg_buf page = {0};
        tg_error why = {0};
        int code = 0;
        tg_status got = tg_http_get(t->addresses[i], "/status", TIMEOUT_MS, &code, &page, &why);
        if (got == TG_OK && code != 200) got = tg_fail(&why, TG_UNAVAILABLE, "answers %d", code);
        if (got == TG_OK) got = tg_top_rows_add(out, t->addresses[i], page.data, page.len, &why);
        if (got == TG_OK)
            ++*answered;
        else
            st = tg_top_rows_add_down(out, t->addresses[i], why.msg, err);
        tg_buf_fini(&page);
    }
    out->at_ns = tg_clock_ns();
    return st;
}

static void pause_ms(int64_t ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

static tg_status show(const top *t, const tg_top_rows *now, const tg_top_rows *before,
                      tg_error *err) {
    tg_buf text = {0};
    char when[24];
    if (t->live) {
        tg_clock_text(when, sizeof when);
        tg_buf_printf(&text, "\033[H\033[Jtextgen top  %s  every %.1f s, Ctrl-C ends\n\n", when,
                      (double)t->interval_ms / 1e3);
    }
    tg_top_rows_write(now, before, t->live, &text);
    if (!t->once && !t->live) tg_buf_putc(&text, '\n');
    tg_status st = tg_stdout_write(&text, err);
    tg_buf_fini(&text);
    return st;
}

static tg_status run(const top *t, tg_error *err) {
    tg_top_rows before = {0}, now = {0};
    size_t answered;
    tg_status st = poll_all(t, &before, &answered, err);
    if (st == TG_OK && t->live) st = show(t, &before, NULL, err);
    while (st == TG_OK) {
        pause_ms(t->interval_ms);
        st = poll_all(t, &now, &answered, err);
        if (st == TG_OK) st = show(t, &now, &before, err);
        if (st == TG_OK && t->once) {
            if (!answered) st = tg_fail(err, TG_UNAVAILABLE, "none of the addresses answers");
            break;
        }
        tg_top_rows_fini(&before);
        before = now;
        memset(&now, 0, sizeof now);
    }
    tg_top_rows_fini(&before);
    tg_top_rows_fini(&now);
    return st;
}

int tg_cmd_top(int argc, char **argv) {
    double interval = 2; /* workers tell their brokers once a second */
    top t = {0};
    const tg_flag flags[] = {
        {"once", TG_FLAG_SWITCH, &t.once, NULL, "Print one table and end; for scripts."},
        {"interval", TG_FLAG_FLOAT, &interval, "S", "Seconds between two looks (2)."},
        {0}};
    const tg_args_spec spec = {"textgen top",
                               "[HOST:PORT…] [--once] [--interval S]",
                               "Live table of workers, slots, rates and lag, from the --http ports "
                               "of brokers, learners and "
                               "workers (127.0.0.1:9601).",
                               flags,
                               "  textgen top\n"
                               "  textgen top broker:9601 127.0.0.1:9602 --interval 5\n"
                               "  textgen top 9601 --once\n",
                               0,
                               -1,
                               true};
    const char *const default_address[] = {"127.0.0.1:9601"};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        t.addresses = args.n_positional ? args.positional : default_address;
        t.n = args.n_positional ? args.n_positional : 1;
        t.interval_ms = (int64_t)(interval * 1000);
        t.live = !t.once && isatty(STDOUT_FILENO);
        if (!(interval >= 0.05 && interval <= 3600))
            st = tg_fail(&err, TG_USAGE, "--interval is 0.05 to 3600 seconds");
        else
            st = run(&t, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
