/* textgen-env --config FILE (--bind ADDRESS | --connect ADDRESS): a worker. */
#include "common/base/str.h"
#include "common/net/sd_notify.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/env/env.h"
#include "env-server/server/server.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    LOAD_USEC = 300000000, /* data and models may take minutes to load */
    CLOSE_MS = 5000        /* for rewards to let go of their programs, plug-ins and connections */
};

/* ---- closing, within a time ----------------------------------------------------------------- */

static void *close_env(void *env) {
    tg_env_close((tg_env **)env);
    return NULL;
}

/* A plug-in that never returns would hold up the end for ever. False: it is still at it, so what it uses must stay. */
static bool close_in_time(tg_env **env) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, close_env, env) != 0) {
        tg_env_close(env);
        return true;
    }
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += CLOSE_MS / 1000;
    if (pthread_timedjoin_np(thread, NULL, &end) == 0) return true;
    pthread_detach(thread);
    return false;
}

/* ---- serving -------------------------------------------------------------------------------- */

static tg_status parent_fd(int *out, tg_error *err) {
    const char *text = getenv("TEXTGEN_PARENT_FD");
    int64_t fd = -1;
    if (text && *text && (!tg_parse_i64(text, &fd) || fd < 0 || fd > 1 << 20))
        return tg_fail(err, TG_USAGE, "TEXTGEN_PARENT_FD: expected a file descriptor, found \"%s\"",
                       text);
    *out = (int)fd;
    return TG_OK;
}

static tg_status serve(const char *config, const tg_args *args, tg_server_opts *o, tg_error *err) {
    if (!o->bind == !o->connect)
        return tg_fail(err, TG_USAGE, "give either --bind ADDRESS or --connect ADDRESS");
    static tg_loaded l; /* these may have to outlive this call: TG_TIMEOUT */
    static tg_env *env;
    tg_status st = parent_fd(&o->parent_fd, err);
    if (st == TG_OK) st = tg_loaded_open(&l, config, args, err);
    if (st != TG_OK) return st;
    tg_sd_notify("STATUS=loading the environment\nEXTEND_TIMEOUT_USEC=%d", LOAD_USEC);
    l.settings.context.security = o->security;
    l.settings.context.insecure = o->insecure;
    st = tg_env_open(&env, &l.settings, err);
    if (st == TG_OK) {
        st = tg_server_run(env, o, err);
        if (st != TG_TIMEOUT && !close_in_time(&env))
            st = tg_fail(err, TG_TIMEOUT, "ended without waiting for a reward that never returns");
    }
    if (st != TG_TIMEOUT) tg_loaded_close(&l);
    return st;
}

static tg_status serve_secured(const char *config, const tg_args *args, tg_server_opts *o,
                               const tg_security_opts *keys, tg_error *err) {
    tg_security *security;
    tg_status st = tg_ops_logging(&o->ops, err);
    if (st == TG_OK) st = tg_security_open(&security, keys, err);
    if (st != TG_OK) return st;
    tg_security_harden(security);
    o->security = security;
    o->insecure = keys->insecure;
    st = serve(config, args, o, err);
    if (st != TG_TIMEOUT) tg_security_close(&security);
    return st;
}

int tg_command_serve(int argc, char **argv) {
    const char *config = NULL;
    tg_server_opts o = {.parent_fd = -1, .limits = TG_LIMIT_OPTS_DEFAULT};
    tg_security_opts keys = {0};
    int64_t threads = 0, capacity = 65536, heartbeat_ms = 0, lease_ms = 60000, credits = 512;
    int64_t drain_ms = 10000;
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &config, "FILE", "RL4LMs-style YAML config."},
        {"bind", TG_FLAG_STR, &o.bind, "ADDRESS",
         "Listen for clients: ipc://PATH or tcp://HOST:PORT."},
        {"connect", TG_FLAG_STR, &o.connect, "ADDRESS",
         "Offer this worker to a learner that listens there."},
        TG_SECURITY_FLAGS(keys),
        TG_OPS_FLAGS(o.ops),
        {"threads", TG_FLAG_INT, &threads, "N",
         "Threads for metrics and slow rewards (2; 64 with rewards had elsewhere)."},
        {"capacity", TG_FLAG_INT, &capacity, "N", "Slots over all clients (65536)."},
        {"lease-ms", TG_FLAG_INT, &lease_ms, "MS",
         "How long the slots of a lost client are kept for its return (60000; 0: not at all)."},
        {"credits", TG_FLAG_INT, &credits, "N", "Requests a client may have unanswered (512)."},
        {"drain-ms", TG_FLAG_INT, &drain_ms, "MS",
         "How long calls under way may take after SIGTERM (10000)."},
        TG_LIMIT_FLAGS(o.limits),
        {"heartbeat-ms", TG_FLAG_INT, &heartbeat_ms, "MS", "Interval of heartbeats (1000)."},
        {0}};
    const tg_args_spec spec = {
        "textgen-env",
        "--config FILE (--bind ADDRESS | --connect ADDRESS) [key=value…]",
        "An environment worker: prompts, episodes, rewards and metrics for learners and gym "
        "clients. "
        "Further commands: check, list, data, score (each with --help).",
        flags,
        "  textgen-env --config configs/increasing_numbers.yml --bind ipc:///tmp/env.sock\n"
        "  textgen-env --config c.yml --connect tcp://127.0.0.1:5555 "
        "env.args.max_episode_length=30\n"
        "  textgen-env --config c.yml --bind tcp://0.0.0.0:5555 --key env.key --allow allow.txt\n"
        "  textgen-env --config c.yml --connect tcp://broker:7602 --key worker.key --server-key "
        "broker.pub\n",
        0,
        1,
        false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) {
        if (threads < 0 || threads > 64 || capacity < 1 || capacity > 1 << 20 || heartbeat_ms < 0 ||
            heartbeat_ms > 600000 || lease_ms < 0 || lease_ms > 86400000 || credits < 1 ||
            credits > 1 << 20 || drain_ms < 1 || drain_ms > 600000)
            st =
                tg_fail(&err, TG_USAGE,
                        "--threads is 0 (chosen) to 64, --capacity 1 to 1048576, --heartbeat-ms 0 "
                        "to 600000, "
                        "--lease-ms 0 to 86400000, --credits 1 to 1048576, --drain-ms 1 to 600000");
        if (st == TG_OK) st = tg_limit_opts_check(&o.limits, &err);
        o.threads = (int)threads, o.capacity = (uint32_t)capacity,
        o.heartbeat_ms = (int)heartbeat_ms, o.lease_ms = lease_ms ? (int)lease_ms : -1,
        o.credits = (uint32_t)credits, o.drain_ms = (int)drain_ms;
        if (st == TG_OK) st = serve_secured(config, &args, &o, &keys, &err);
    }
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
