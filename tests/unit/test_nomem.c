/* R17: memory that fails, anywhere, in a world of one process: a client (fleet), an environment server and, between them,
 * a broker, each on its own thread. One allocation fails at every place in turn; then every k-th one does, for good.
 * Nothing crashes, nothing leaks (under AddressSanitizer), every call ends, and what is answered is right. */
#include "common/base/alloc.h"
#include "common/base/alloc_faults.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/config/tree.h"
#include "common/net/fleet.h"
#include "env-server/broker/broker.h"
#include "env-server/env/env.h"
#include "env-server/server/server.h"
#include "tests/support/tg_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 2, STEPS = 3, PATIENCE_MS = 60000 };

typedef struct world {
    tg_run_config config;
    tg_env_settings settings;
    tg_env *env;
    char front[128], back[128];
    bool has_broker;
    pthread_t server, broker;
    atomic_bool over;
    /* the client */
    uv_loop_t loop;
    uv_timer_t timer;
    tg_net *net;
    tg_fleet *fleet;
    uint32_t slot[SLOTS];
    int ended; /* calls */
    tg_code code;
    char why[128];
    uint64_t digest;
    uint64_t deadline; /* of the whole run */
    bool may_abort;    /* what cannot be put back ends, with a word */
} world;

/* Without this, libuv would give SIGTERM its deadly meaning back whenever the last loop ends. */
static void on_sigterm(uv_signal_t *handle, int number) {
    (void)handle, (void)number;
}

static void keep_sigterm(void) {
    static uv_loop_t loop;
    static uv_signal_t handle;
    if (handle.loop) return;
    uv_loop_init(&loop);
    uv_signal_init(&loop, &handle);
    uv_signal_start(&handle, on_sigterm, SIGTERM);
}

static bool open_env(world *w) {
    char yaml[1024];
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root;
    memset(w, 0, sizeof *w);
    keep_sigterm();
    snprintf(yaml, sizeof yaml,
             "tokenizer: {model_name: \"%s\"}\n"
             "reward_fn: {id: sentences_with_dates}\n"
             "datapool: {id: dummy_pool, args: {prompt: \"Hello\"}}\n"
             "env: {args: {max_prompt_length: 8, max_episode_length: 8}}\n"
             "alg: {id: ppo}\ntrain_evaluation: {metrics: [{id: dates}]}\n",
             tg_test_path("golden/env/tokenizer"));
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK) st = tg_run_config_init(&w->config, &arena, root, &err);
    if (st == TG_OK) st = tg_env_settings_read(&w->settings, &w->config, &err);
    if (st == TG_OK) st = tg_env_open(&w->env, &w->settings, &err);
    return tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg);
}

/* Whoever cannot start for want of memory is started again, as a supervisor would. */
static void *serve(void *arg) {
    world *w = arg;
    do {
        tg_error err = {0};
        tg_server_opts o = {.threads = 1, .capacity = 64, .parent_fd = -1, .heartbeat_ms = 500};
        *(w->has_broker ? &o.connect : &o.bind) = w->has_broker ? w->back : w->front;
        if (tg_server_run(w->env, &o, &err) != TG_OK) usleep(1000);
    } while (!atomic_load(&w->over));
    return NULL;
}

static void *mediate(void *arg) {
    world *w = arg;
    do {
        tg_error err = {0};
        tg_broker_opts o = {.front = w->front,
                            .back = w->back,
                            .heartbeat_ms = 500,
                            .drain_ms = 50,
                            .limits = TG_LIMIT_OPTS_DEFAULT};
        if (tg_broker_run(&o, &err) != TG_OK) usleep(1000);
    } while (!atomic_load(&w->over));
    return NULL;
}

static void on_reset(void *arg, const tg_reset_result *r) {
    world *w = arg;
    w->ended++;
    w->code = r->code;
    snprintf(w->why, sizeof w->why, "%s", r->message ? r->message : "");
    w->digest = r->state_digest;
}

static void on_step(void *arg, const tg_step_result *r) {
    world *w = arg;
    w->ended++;
    w->code = r->code;
    snprintf(w->why, sizeof w->why, "%s", r->message ? r->message : "");
    w->digest = r->state_digest;
}

static void on_restore(void *arg, const tg_restore_result *r) {
    world *w = arg;
    w->ended++;
    w->code = r->code;
    snprintf(w->why, sizeof w->why, "%s", r->message ? r->message : "");
    w->digest = r->state_digest;
}

static const tg_fleet_ops OPS = {
    .on_reset = on_reset, .on_step = on_step, .on_restore = on_restore};

static void on_tick(uv_timer_t *timer) {
    (void)timer;
}

static bool late(const world *w) {
    return tg_clock_ms() > w->deadline;
}

static void start(world *w, bool broker) {
    static int n;
    tg_error err;
    w->has_broker = broker;
    atomic_store(&w->over, false);
    snprintf(w->front, sizeof w->front, "ipc://%s/front%d", tg_test_tmpdir(), n);
    snprintf(w->back, sizeof w->back, "ipc://%s/back%d", tg_test_tmpdir(), n++);
    w->deadline = tg_clock_ms() + PATIENCE_MS;
    if (broker) pthread_create(&w->broker, NULL, mediate, w);
    pthread_create(&w->server, NULL, serve, w);
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->timer);
    uv_timer_start(&w->timer, on_tick, 5, 5);
    while (tg_net_create(&w->net, &err) != TG_OK && !late(w)) continue;
    tg_fleet_opts o = {.connect = w->front, .heartbeat_ms = 500, .ops = &OPS, .arg = w};
    while (tg_fleet_open(&w->fleet, w->net, &w->loop, &o, &err) != TG_OK && !late(w)) continue;
}

static void end_client(world *w) {
    tg_fleet_close(&w->fleet, "done");
    uv_close((uv_handle_t *)&w->timer, NULL);
    while (uv_run(&w->loop, UV_RUN_DEFAULT)) continue;
    uv_loop_close(&w->loop);
    tg_net_destroy(&w->net);
}

/* SIGTERM ends them one loop at a time: one that was not running yet is told again. */
static void join(pthread_t thread) {
    struct timespec soon;
    do {
        kill(getpid(), SIGTERM);
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 50 * 1000000;
        if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
    } while (pthread_timedjoin_np(thread, NULL, &soon) != 0);
}

static void stop(world *w) {
    end_client(w);
    tg_alloc_fail_after(-1);
    tg_alloc_fail_every(0);
    atomic_store(&w->over, true);
    join(w->server);
    if (w->has_broker) join(w->broker);
}

static bool wait_call(world *w, int ended) {
    tg_fleet_kick(w->fleet);
    while (w->ended < ended && !late(w)) uv_run(&w->loop, UV_RUN_ONCE);
    return w->ended >= ended;
}

typedef enum call { RESET, STEP, RESTORE } call;

static tg_status begin(world *w, call kind, const void *item, tg_error *err) {
    uint64_t end = tg_clock_ms() + 10000;
    return kind == RESET  ? tg_fleet_reset(w->fleet, item, false, end, err)
           : kind == STEP ? tg_fleet_step(w->fleet, item, false, end, err)
                          : tg_fleet_restore(w->fleet, item, end, err);
}

/* Once, or again after an error that says so; never a wrong answer. */
static bool make(world *w, call kind, const void *item) {
    while (!late(w)) {
        tg_error err;
        int want = w->ended + 1;
        tg_status st = begin(w, kind, item, &err);
        if (st == TG_NOMEM) continue;
        if (!tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg)) return false;
        if (!wait_call(w, want)) break;
        if (w->code == TG_CODE_OK) return true;
        if (w->code == TG_CODE_EPISODE_ABORTED && w->may_abort && strstr(w->why, "out of memory"))
            return false;
        if (w->code != TG_CODE_OVERLOADED && w->code != TG_CODE_DEADLINE_EXCEEDED)
            return tg_check(false, __FILE__, __LINE__, "answered %s: %s", tg_code_name(w->code),
                            w->why);
    }
    return tg_check(false, __FILE__, __LINE__, "%s: only %s in %d s",
                    kind == RESET  ? "reset"
                    : kind == STEP ? "step"
                                   : "restore",
                    tg_code_name(w->code), PATIENCE_MS / 1000);
}

static bool add_slots(world *w) {
    tg_error err;
    for (int i = 0; i < SLOTS; i++)
        while (tg_fleet_add_slot(w->fleet, &w->slot[i], &err) != TG_OK)
            if (late(w)) return false;
    return true;
}

/* An episode on the first slot, put back on the second and ended there. Returns a digest of all that was answered. */
static uint64_t play(world *w) {
    int32_t tokens[STEPS + 1] = {70, 71, 72, 73};
    double rewards[STEPS] = {0};
    if (!add_slots(w)) return 0;
    tg_reset_item reset = {.slot = w->slot[0], .episode = 5, .seed = 3, .split = TG_SPLIT_TRAIN};
    if (!make(w, RESET, &reset)) return 0;
    uint64_t first = w->digest, all = first;
    for (uint32_t i = 0; i < STEPS; i++) {
        if (!make(w, STEP, &(tg_step_item){w->slot[0], 5, i, &tokens[i], 1})) return 0;
        all = tg_siphash(all, 1, &w->digest, sizeof w->digest);
    }
    tg_fleet_log_view log = tg_fleet_slot_log(w->fleet, w->slot[0]);
    if (log.n == STEPS) memcpy(rewards, log.rewards, sizeof rewards);
    tg_restore_item item = {.slot = w->slot[1],
                            .episode = 5,
                            .seed = 3,
                            .split = TG_SPLIT_TRAIN,
                            .sample = log.reset.sample,
                            .tokens = tokens,
                            .rewards = rewards,
                            .n_tokens = STEPS,
                            .reset_digest = first,
                            .state_digest = log.digest};
    if (!make(w, RESTORE, &item)) return 0;
    if (!make(w, STEP, &(tg_step_item){w->slot[1], 5, STEPS, &tokens[STEPS], 1})) return 0;
    return tg_siphash(all, 2, &w->digest, sizeof w->digest);
}

/* Returns how many allocations were made; 0 after a failed check. */
static uint64_t run(world *w, bool broker, int64_t fail_after, int64_t fail_every, uint64_t want) {
    uint64_t before = tg_alloc_calls();
    w->may_abort = fail_every > 0 || fail_after >= 0;
    w->code = TG_CODE_OK;
    tg_alloc_fail_after(fail_after);
    tg_alloc_fail_every(fail_every);
    start(w, broker);
    uint64_t got = play(w);
    stop(w);
    if (got == 0 && w->may_abort && w->code == TG_CODE_EPISODE_ABORTED) return 1;
    bool ok = tg_check(got != 0 && (want == 0 || got == want), __FILE__, __LINE__,
                       "%s broker, allocation %lld, every %lld: %016llx instead of %016llx",
                       broker ? "with" : "without", (long long)fail_after, (long long)fail_every,
                       (unsigned long long)got, (unsigned long long)want);
    if (want == 0) w->digest = got;
    return ok ? tg_alloc_calls() - before : 0;
}

static bool long_run(void) {
    return getenv("CHAOS_LONG") != NULL;
}

static void one_by_one(bool broker) {
    world w;
    if (!open_env(&w)) return;
    uint64_t n = run(&w, broker, -1, 0, 0), want = w.digest;
    int64_t stride = long_run() ? 1 : (int64_t)(n / 30 + 1), done = 0;
    for (int64_t k = 0; n && k < (int64_t)n; k += stride, done++)
        if (!run(&w, broker, k, 0, want)) break;
    printf("%s broker: %llu allocations, %lld runs with one failed\n", broker ? "with" : "without",
           (unsigned long long)n, (long long)done);
    tg_env_close(&w.env);
    tg_run_config_fini(&w.config);
}

static void every_kth(bool broker) {
    static const int64_t every[] = {97, 41, 23, 13};
    world w;
    if (!open_env(&w)) return;
    run(&w, broker, -1, 0, 0);
    uint64_t want = w.digest;
    for (size_t i = 0; want && i < sizeof every / sizeof *every; i++)
        if (!run(&w, broker, -1, every[i], want)) break;
    tg_env_close(&w.env);
    tg_run_config_fini(&w.config);
}

TEST(R17_each_allocation_of_client_and_server) {
    one_by_one(false);
}

TEST(R17_each_allocation_of_client_broker_and_server) {
    one_by_one(true);
}

TEST(R17_every_kth_allocation_of_client_and_server) {
    every_kth(false);
}

TEST(R17_every_kth_allocation_of_client_broker_and_server) {
    every_kth(true);
}

TEST_MAIN
