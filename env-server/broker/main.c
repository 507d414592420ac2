/* textgen-broker: one address for many clients and many workers. */
#include "common/config/args.h"
#include "env-server/broker/broker.h"
#include "proto/limits.h"

#include <stdio.h>
#include <string.h>

static tg_status check(int64_t value, int64_t low, int64_t high, const char *flag, tg_error *err) {
    if (value >= low && value <= high) return TG_OK;
    return tg_fail(err, TG_USAGE, "--%s is %lld to %lld, not %lld", flag, (long long)low,
                   (long long)high, (long long)value);
}

static tg_status run(tg_broker_opts *o, const tg_security_opts *keys, tg_error *err) {
    tg_security *security;
    tg_status st = tg_ops_logging(&o->ops, err);
    if (st == TG_OK) st = tg_security_open(&security, keys, err);
    if (st != TG_OK) return st;
    tg_security_harden(security);
    o->security = security;
    o->insecure = keys->insecure;
    st = tg_broker_run(o, err);
    tg_security_close(&security);
    return st;
}

int main(int argc, char **argv) {
    tg_args_begin();
    tg_broker_opts o = {.limits = TG_LIMIT_OPTS_DEFAULT};
    tg_security_opts keys = {0};
    int64_t min_workers = 1, heartbeat_ms = 0, lease_ms = 0, drain_ms = 0;
    const tg_flag flags[] = {
        {"front", TG_FLAG_STR, &o.front, "ADDRESS",
         "Where clients and learners connect: ipc://PATH or tcp://HOST:PORT."},
        {"back", TG_FLAG_STR, &o.back, "ADDRESS",
         "Where workers (textgen-env --connect) and reward workers connect."},
        {"min-workers", TG_FLAG_INT, &min_workers, "N",
         "Clients are asked to wait until so many workers are there (1)."},
        TG_SECURITY_FLAGS(keys),
        TG_OPS_FLAGS(o.ops),
        TG_LIMIT_FLAGS(o.limits),
        {"heartbeat-ms", TG_FLAG_INT, &heartbeat_ms, "MS", "Interval of heartbeats (1000)."},
        {"lease-ms", TG_FLAG_INT, &lease_ms, "MS",
         "How long a client that was cut off finds its slots again (60000)."},
        {"drain-ms", TG_FLAG_INT, &drain_ms, "MS",
         "How long calls under way may take after SIGTERM (10000)."},
        {0}};
    const tg_args_spec spec = {
        "textgen-broker",
        "--front ADDRESS --back ADDRESS",
        "One address for many clients and many environment workers: places slots, replaces workers "
        "that die, hands scores to reward workers.",
        flags,
        "  textgen-broker --front ipc:///tmp/tg-front --back ipc:///tmp/tg-back\n"
        "  textgen-env --config c.yml --connect ipc:///tmp/tg-back       # as many as you like\n"
        "  textgen train c.yml pool.connect=ipc:///tmp/tg-front\n"
        "  textgen-broker --front tcp://0.0.0.0:7601 --back tcp://0.0.0.0:7602 --key broker.key "
        "--allow allow.txt\n",
        0,
        0,
        false};
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("textgen-broker %s\n", TG_VERSION);
        return 0;
    }
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        if (!o.front || !o.back)
            st = tg_fail(&err, TG_USAGE, "give --front ADDRESS and --back ADDRESS");
        if (st == TG_OK) st = check(min_workers, 0, 1 << 16, "min-workers", &err);
        if (st == TG_OK) st = check(heartbeat_ms, 0, 600000, "heartbeat-ms", &err);
        if (st == TG_OK) st = check(lease_ms, 0, 86400000, "lease-ms", &err);
        if (st == TG_OK) st = check(drain_ms, 0, 600000, "drain-ms", &err);
        if (st == TG_OK) st = tg_limit_opts_check(&o.limits, &err);
        o.min_workers = (int)min_workers;
        o.heartbeat_ms = (int)heartbeat_ms, o.lease_ms = (int)lease_ms, o.drain_ms = (int)drain_ms;
        if (st == TG_OK) st = run(&o, &keys, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
