/* textgen bench env: throughput and latency of a server. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/config/args.h"
#include "env-server/cli/commands.h"
#include "env-server/load/load.h"

#include <stdio.h>
#include <string.h>

static double us(uint64_t ns) {
    return (double)ns * 1e-3;
}

static void print_times(const char *what, const tg_histogram *h) {
    printf("%-6s mean %9.1f  p50 %9.1f  p90 %9.1f  p99 %9.1f  p99.9 %9.1f  max %9.1f us\n", what,
           tg_histogram_mean(h) * 1e-3, us(tg_histogram_at(h, 0.5)), us(tg_histogram_at(h, 0.9)),
           us(tg_histogram_at(h, 0.99)), us(tg_histogram_at(h, 0.999)), us(h->max));
}

static void print_result(const tg_load_result *r) {
    printf("%zu sessions, %zu slots, %.2f s: %.0f steps/s, %.0f tokens/s, %.0f episodes/s\n",
           r->sessions, r->slots, r->seconds, (double)r->steps / r->seconds,
           (double)r->tokens / r->seconds, (double)r->episodes / r->seconds);
    print_times("step", &r->step);
    print_times("reset", &r->reset);
    if (r->missed) printf("%llu steps were due and never begun\n", (unsigned long long)r->missed);
    if (r->workers_lost)
        printf("%llu connections lost, %llu episodes rebuilt\n",
               (unsigned long long)r->workers_lost, (unsigned long long)r->rebuilt);
    for (int c = 0; c < TG_LOAD_CODES; c++)
        if (r->codes[c])
            printf("%llu calls failed: %s\n", (unsigned long long)r->codes[c],
                   tg_code_name((tg_code)c));
}

static void times_json(tg_buf *b, const char *what, const tg_histogram *h) {
    tg_buf_printf(b,
                  ", \"%s_us\": {\"mean\": %.3f, \"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f, "
                  "\"p999\": %.3f, \"max\": %.3f}",
                  what, tg_histogram_mean(h) * 1e-3, us(tg_histogram_at(h, 0.5)),
                  us(tg_histogram_at(h, 0.9)), us(tg_histogram_at(h, 0.99)),
                  us(tg_histogram_at(h, 0.999)), us(h->max));
}

static void result_json(tg_buf *b, const tg_load_opts *o, const tg_load_result *r) {
    tg_buf_printf(b,
                  "{\"sessions\": %zu, \"slots\": %zu, \"tokens_per_step\": %u, \"rate\": %.3f, "
                  "\"seconds\": %.3f, \"steps_per_s\": %.1f, \"tokens_per_s\": %.1f, "
                  "\"episodes_per_s\": %.1f, \"errors\": %llu, \"missed\": %llu, "
                  "\"workers_lost\": %llu, \"episodes_rebuilt\": %llu",
                  r->sessions, r->slots, o->tokens, o->rate, r->seconds,
                  (double)r->steps / r->seconds, (double)r->tokens / r->seconds,
                  (double)r->episodes / r->seconds, (unsigned long long)r->errors,
                  (unsigned long long)r->missed, (unsigned long long)r->workers_lost,
                  (unsigned long long)r->rebuilt);
    times_json(b, "step", &r->step);
    times_json(b, "reset", &r->reset);
    tg_buf_puts(b, "}\n");
}

static void result_csv(tg_buf *b, const tg_load_opts *o, const tg_load_result *r) {
    tg_buf_puts(b, "sessions,slots,tokens_per_step,rate,seconds,steps_per_s,tokens_per_s,errors,"
                   "p50_us,p90_us,p99_us,p999_us,max_us\n");
    const tg_histogram *h = &r->step;
    tg_buf_printf(b, "%zu,%zu,%u,%.3f,%.3f,%.1f,%.1f,%llu,%.3f,%.3f,%.3f,%.3f,%.3f\n", r->sessions,
                  r->slots, o->tokens, o->rate, r->seconds, (double)r->steps / r->seconds,
                  (double)r->tokens / r->seconds, (unsigned long long)r->errors,
                  us(tg_histogram_at(h, 0.5)), us(tg_histogram_at(h, 0.9)),
                  us(tg_histogram_at(h, 0.99)), us(tg_histogram_at(h, 0.999)), us(h->max));
}

static tg_status write_file(const char *path, tg_buf *b, tg_error *err) {
    if (!path) return TG_OK;
    if (b->failed) return tg_fail_nomem(err, b->len);
    return tg_file_write_atomic(path, b->data, b->len, err);
}

static tg_status report(const tg_load_opts *o, const tg_load_result *r, const char *json,
                        const char *csv, tg_error *err) {
    tg_buf b = {0};
    print_result(r);
    result_json(&b, o, r);
    tg_status st = write_file(json, &b, err);
    tg_buf_reset(&b);
    result_csv(&b, o, r);
    if (st == TG_OK) st = write_file(csv, &b, err);
    tg_buf_fini(&b);
    return st;
}

static tg_status run(tg_load_opts *o, const tg_security_opts *keys, const char *json,
                     const char *csv, tg_error *err) {
    tg_security *security;
    tg_status st = tg_security_open(&security, keys, err);
    if (st != TG_OK) return st;
    o->security = security;
    o->insecure = keys->insecure;
    tg_log_set_stderr(TG_LOG_ERROR); /* thousands of sessions come and go */
    tg_load_result *r = tg_alloc(sizeof *r);
    st = r ? tg_load_run(o, r, err) : tg_fail_nomem(err, sizeof *r);
    tg_security_close(&security);
    if (st == TG_OK) st = report(o, r, json, csv, err);
    tg_free(r);
    return st;
}

static tg_status check(const tg_load_opts *o, int64_t sessions, int64_t slots, int64_t tokens,
                       tg_error *err) {
    if (!o->address == !o->bind)
        return tg_fail(err, TG_USAGE, "give either --address ADDRESS or --bind ADDRESS");
    if (sessions < 1 || sessions > 20000 || slots < 1 || slots > 65536 || tokens < 1 ||
        tokens > 4096)
        return tg_fail(err, TG_USAGE,
                       "--sessions is 1 to 20000, --slots 1 to 65536, --tokens 1 to 4096");
    if (!(o->seconds > 0) || o->warmup < 0 || o->rate < 0)
        return tg_fail(err, TG_USAGE, "--seconds is above 0, --warmup and --rate are not negative");
    if (o->bind && sessions > 1)
        return tg_fail(err, TG_USAGE, "with --bind there is one session for each worker");
    return TG_OK;
}

int tg_command_bench(int argc, char **argv) {
    tg_load_opts o = {.seconds = 5, .warmup = 1, .seed = 1};
    tg_security_opts keys = {0};
    const char *json = NULL, *csv = NULL;
    int64_t sessions = 1, slots = 64, tokens = 1, timeout_ms = 60000;
    int64_t heartbeat_ms = 0, open_ms = 60000;
    const tg_flag flags[] = {
        {"address", TG_FLAG_STR, &o.address, "ADDRESS",
         "A server that listens (textgen-env --bind) or a broker's front."},
        {"bind", TG_FLAG_STR, &o.bind, "ADDRESS",
         "Instead: workers (textgen-env --connect) connect here."},
        {"sessions", TG_FLAG_INT, &sessions, "N", "Connections (1)."},
        {"slots", TG_FLAG_INT, &slots, "N", "Slots of each session, stepped in batches (64)."},
        {"tokens", TG_FLAG_INT, &tokens, "N", "Tokens of each step (1)."},
        {"seconds", TG_FLAG_FLOAT, &o.seconds, "S", "How long to measure (5)."},
        {"warmup", TG_FLAG_FLOAT, &o.warmup, "S", "How long to run before (1)."},
        {"rate", TG_FLAG_FLOAT, &o.rate, "N",
         "Steps a second, due whatever the server does (0: each slot as fast as it can)."},
        {"timeout-ms", TG_FLAG_INT, &timeout_ms, "MS", "Deadline of a call (60000)."},
        {"heartbeat-ms", TG_FLAG_INT, &heartbeat_ms, "MS", "Interval of heartbeats (1000)."},
        {"open-ms", TG_FLAG_INT, &open_ms, "MS", "Time for opening all sessions (60000)."},
        {"json", TG_FLAG_STR, &json, "FILE", "Write the figures as JSON."},
        {"csv", TG_FLAG_STR, &csv, "FILE", "Write the figures as CSV."},
        TG_SECURITY_FLAGS(keys),
        {0}};
    const tg_args_spec spec = {
        "textgen bench",
        "env (--address ADDRESS | --bind ADDRESS)",
        "Throughput and latency of an environment server: slots play episodes of random tokens.",
        flags,
        "  textgen bench env --address ipc:///tmp/env.sock --slots 64\n"
        "  textgen bench env --address ipc:///tmp/env.sock --slots 1 --json one.json\n"
        "  textgen bench env --address tcp://broker:7601 --sessions 100 --slots 16 --rate 50000\n",
        1,
        1,
        false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        if (strcmp(args.positional[0], "env") != 0)
            st = tg_fail(&err, TG_USAGE,
                         "unknown benchmark '%s': only env is built in; `make "
                         "bench` measures the engine",
                         args.positional[0]);
        if (st == TG_OK) st = check(&o, sessions, slots, tokens, &err);
        o.sessions = (uint32_t)sessions, o.slots = (uint32_t)slots, o.tokens = (uint32_t)tokens;
        o.timeout_ms = (int)timeout_ms, o.heartbeat_ms = (int)heartbeat_ms;
        o.open_ms = (int)open_ms;
        if (st == TG_OK) st = run(&o, &keys, json, csv, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
