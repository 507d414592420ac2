/* Token steps through a real worker process: how many in a second, and how long one takes.
 *
 *   bench_env_server [SECONDS]     a table on stdout and JSON lines; the worker is $BUILD/textgen-env
 *
 * The client speaks frames over a plain ZeroMQ socket. Throughput: batches of 64 slots, one token each, 1, 2 or 4 batches under
 * way. Latency: one slot, one call at a time. "per core" is by the worker's own CPU time, all its threads together. */
#include "common/base/clock.h"
#include "proto/codec.h"
#include "proto/frame.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { BATCH = 64, MAX_WINDOW = 4, LENGTH = 64, MAX_CALLS = 1 << 20 };

typedef struct bench {
    char folder[64], address[128];
    pid_t worker;
    void *ctx, *sock;
    uint64_t session, seq, beat_ms;
    tg_buf out;
    tg_arena arena;
    tg_msg_pool *pool;
    uint32_t *us; /* durations of calls, in 1/10 us */
} bench;

static void fail(const char *what) {
    fprintf(stderr, "bench_env_server: %s\n", what);
    exit(1);
}

/* ---- the worker ------------------------------------------------------------------------------ */

static void start_worker(bench *b, const char *transport) {
    char config[128], ready[256] = "", binary[256];
    const char *build = getenv("BUILD");
    snprintf(binary, sizeof binary, "%s/textgen-env", build ? build : "build");
    snprintf(b->folder, sizeof b->folder, "/tmp/textgen-bench.XXXXXX");
    if (!mkdtemp(b->folder)) fail("mkdtemp");
    snprintf(config, sizeof config, "%s/c.yml", b->folder);
    FILE *f = fopen(config, "w");
    if (!f) fail("config");
    fprintf(f,
            "tokenizer: {model_name: tests/golden/env/tokenizer}\n"
            "reward_fn: {id: increasing_numbers, args: {min_tokens: 20}}\n"
            "datapool: {id: dummy_pool, args: {prompt: \"Hello the\", n_samples: 100}}\n"
            "env: {args: {max_prompt_length: 8, max_episode_length: %d}}\nalg: {id: "
            "ppo}\ntrain_evaluation: {}\n",
            LENGTH);
    fclose(f);
    char bind[160];
    if (!strcmp(transport, "ipc"))
        snprintf(bind, sizeof bind, "ipc://%s/sock", b->folder);
    else
        snprintf(bind, sizeof bind, "tcp://127.0.0.1:*");
    int pipes[2];
    if (pipe(pipes)) fail("pipe");
    b->worker = fork();
    if (b->worker == 0) {
        dup2(pipes[1], 1);
        FILE *null = freopen("/dev/null", "w", stderr);
        (void)null;
        execl(binary, binary, "--config", config, "--bind", bind, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    FILE *out = fdopen(pipes[0], "r");
    if (!out || !fgets(ready, sizeof ready, out))
        fail("textgen-env did not start (build it first)");
    if (sscanf(ready, "textgen-env ready bind %127s", b->address) != 1) fail(ready);
}

static void stop_worker(bench *b) {
    char command[128];
    kill(b->worker, SIGTERM);
    waitpid(b->worker, NULL, 0);
    snprintf(command, sizeof command, "rm -rf %s", b->folder);
    if (system(command)) fail("rm");
}

static double worker_cpu(const bench *b) {
    char path[64], text[1024] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)b->worker);
    FILE *f = fopen(path, "r");
    unsigned long user = 0, system_time = 0;
    if (!f || !fgets(text, sizeof text, f)) fail("no /proc");
    fclose(f);
    sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
           &system_time);
    return (double)(user + system_time) / (double)sysconf(_SC_CLK_TCK);
}

static long worker_rss_kb(const bench *b) {
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)b->worker);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %ld", &kb);
    if (f) fclose(f);
    return kb;
}

/* ---- the client ------------------------------------------------------------------------------ */

static void send_msg(bench *b, tg_msg_type type, const void *msg) {
    tg_error err;
    tg_buf_reset(&b->out);
    tg_frame head = {type, 0, b->session, ++b->seq};
    if (tg_frame_encode_in(&b->arena, &head, msg, &b->out, &err) != TG_OK) fail(err.msg);
    if (zmq_send(b->sock, b->out.data, b->out.len, 0) < 0) fail("send");
}

/* The next message of this type, owned; others are dropped. */
static void *receive(bench *b, tg_msg_type want) {
    for (;;) {
        zmq_msg_t part;
        tg_frame head;
        void *msg = NULL;
        tg_error err;
        uint64_t now = tg_clock_ms();
        if (b->session && now - b->beat_ms > 500) {
            b->beat_ms = now;
            send_msg(b, TG_MSG_HEARTBEAT, &(tg_heartbeat){0});
        }
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, b->sock, 0) < 0) fail("no answer in 5 s");
        tg_status st = tg_frame_decode_from(b->pool, zmq_msg_data(&part), zmq_msg_size(&part),
                                            &head, &msg, &err);
        zmq_msg_close(&part);
        if (st != TG_OK) fail(err.msg);
        if (head.type == want) return msg;
        if (head.type == TG_MSG_ERROR) fail(((tg_wire_error *)msg)->message);
        tg_msg_free(msg);
    }
}

static void open_session(bench *b, uint32_t slots) {
    int zero = 0, wait = 5000;
    b->ctx = zmq_ctx_new();
    b->sock = zmq_socket(b->ctx, ZMQ_DEALER);
    zmq_setsockopt(b->sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(b->sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    if (zmq_connect(b->sock, b->address)) fail("connect");
    b->session = b->seq = 0;
    tg_hello hello = {
        .proto_major = 1, .proto_minor = 1, .role = TG_ROLE_CLIENT, .software = "bench"};
    send_msg(b, TG_MSG_HELLO, &hello);
    tg_welcome *w = receive(b, TG_MSG_WELCOME);
    b->session = w->session;
    tg_msg_free(w);
    uint32_t *ids = calloc(slots, sizeof *ids);
    if (!ids) fail("memory");
    for (uint32_t i = 0; i < slots; i++) ids[i] = i;
    send_msg(b, TG_MSG_OPEN_SLOTS, &(tg_slot_list){ids, slots});
    tg_msg_free(receive(b, TG_MSG_SLOTS_OPENED));
    free(ids);
}

static void close_session(bench *b) {
    send_msg(b, TG_MSG_BYE, &(tg_bye){"done"});
    usleep(20000);
    zmq_close(b->sock);
    zmq_ctx_term(b->ctx);
}

/* A group of slots that step together. */
typedef struct group {
    uint32_t first, n, step;
    uint64_t episode;
    int32_t tokens[BATCH];
    tg_step_item items[BATCH];
} group;

static void reset_group(bench *b, group *g) {
    tg_reset_item items[BATCH];
    g->episode++, g->step = 0;
    for (uint32_t i = 0; i < g->n; i++)
        items[i] = (tg_reset_item){
            .slot = g->first + i, .episode = g->episode, .seed = i, .split = TG_SPLIT_TRAIN};
    send_msg(b, TG_MSG_RESET, &(tg_reset_batch){items, g->n, false});
}

static void step_group(bench *b, group *g) {
    for (uint32_t i = 0; i < g->n; i++) {
        g->tokens[i] = (int32_t)(60 + (g->step * 7 + i) % 150); /* never the end */
        g->items[i] = (tg_step_item){g->first + i, g->episode, g->step, &g->tokens[i], 1};
    }
    g->step++;
    send_msg(b, TG_MSG_STEP, &(tg_step_batch){.items = g->items, .n = g->n});
}

static void check_reply(const tg_step_reply *r, const group *g) {
    if (r->n != g->n) fail("a reply of another size");
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].code != TG_CODE_OK || r->items[i].reward_status != TG_REWARD_OK)
            fail(r->items[i].message);
}

static int by_time(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void run_case(bench *b, const char *transport, uint32_t n, uint32_t window, double seconds) {
    static group groups[MAX_WINDOW];
    open_session(b, n * window);
    for (uint32_t w = 0; w < window; w++) {
        groups[w] = (group){.first = w * n, .n = n};
        reset_group(b, &groups[w]);
        tg_msg_free(receive(b, TG_MSG_RESET_REPLY));
    }
    uint64_t sent_ns[MAX_WINDOW];
    size_t calls = 0, timed = 0;
    double warm = 0.2;
    uint64_t start = tg_clock_ns();
    double cpu = 0;
    for (uint32_t w = 0; w < window; w++) {
        sent_ns[w] = tg_clock_ns();
        step_group(b, &groups[w]);
    }
    for (uint32_t w = 0;; w = (w + 1) % window) { /* answers come in the order of the questions */
        tg_step_reply *r = receive(b, TG_MSG_STEP_REPLY);
        uint64_t now = tg_clock_ns();
        check_reply(r, &groups[w]);
        tg_msg_free(r);
        if (warm > 0 && (double)(now - start) > warm * 1e9) {
            warm = 0, start = now, calls = timed = 0;
            cpu = worker_cpu(b);
        }
        calls++;
        if (timed < MAX_CALLS) b->us[timed++] = (uint32_t)((now - sent_ns[w]) / 100);
        if (warm == 0 && (double)(now - start) > seconds * 1e9) break;
        if (groups[w].step == LENGTH - 1) { /* rarely: between two calls that are measured */
            for (uint32_t k = 1; k < window; k++) {
                r = receive(b, TG_MSG_STEP_REPLY);
                check_reply(r, &groups[(w + k) % window]);
                tg_msg_free(r);
                calls++;
            }
            for (uint32_t k = 0; k < window; k++) {
                reset_group(b, &groups[k]);
                tg_msg_free(receive(b, TG_MSG_RESET_REPLY));
            }
            for (uint32_t k = 0; k < window; k++) {
                sent_ns[k] = tg_clock_ns();
                step_group(b, &groups[k]);
            }
            w = window - 1;
            continue;
        }
        sent_ns[w] = tg_clock_ns();
        step_group(b, &groups[w]);
    }
    double took = (double)(tg_clock_ns() - start) / 1e9;
    cpu = worker_cpu(b) - cpu;
    qsort(b->us, timed, sizeof *b->us, by_time);
    double steps = (double)calls * n;
    double p50 = b->us[timed / 2] / 10.0, p99 = b->us[timed * 99 / 100] / 10.0;
    printf(
        "%s  %2u slots x %u under way  %9.0f steps/s  %9.0f per core  p50 %7.1f us  p99 %7.1f us\n",
        transport, n, window, steps / took, cpu > 0 ? steps / cpu : 0, p50, p99);
    printf("{\"bench\":\"env server, %s, %u slots x %u\",\"who\":\"textgen\",\"seconds\":%.9f,"
           "\"steps_per_s\":%.0f,\"steps_per_core_s\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,"
           "\"worker_rss_kb\":%ld}\n",
           transport, n, window, took / steps, steps / took, cpu > 0 ? steps / cpu : 0, p50, p99,
           worker_rss_kb(b));
    fflush(stdout);
    close_session(b);
}

/* Memory of slots that are open, and of slots in an episode. */
static void run_memory(bench *b) {
    enum { SLOTS = 65536 };
    static group g;
    long before = worker_rss_kb(b);
    open_session(b, SLOTS);
    long open = worker_rss_kb(b);
    for (uint32_t at = 0; at < SLOTS; at += BATCH) {
        g = (group){.first = at, .n = BATCH};
        reset_group(b, &g);
        tg_msg_free(receive(b, TG_MSG_RESET_REPLY));
        step_group(b, &g);
        tg_msg_free(receive(b, TG_MSG_STEP_REPLY));
    }
    long live = worker_rss_kb(b);
    printf("memory of 65536 slots: %ld MB open, %ld MB in an episode\n", (open - before) / 1024,
           (live - before) / 1024);
    printf("{\"bench\":\"env server, 65536 slots\",\"open_kb\":%ld,\"live_kb\":%ld}\n",
           open - before, live - before);
    close_session(b);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    bench b = {0};
    b.us = malloc(MAX_CALLS * sizeof *b.us);
    b.pool = tg_msg_pool_create();
    if (!b.us || !b.pool) fail("memory");
    for (int t = 0; t < 2; t++) {
        const char *transport = t ? "tcp" : "ipc";
        start_worker(&b, transport);
        run_case(&b, transport, 1, 1, seconds);
        run_case(&b, transport, BATCH, 1, seconds);
        run_case(&b, transport, BATCH, 2, seconds);
        run_case(&b, transport, BATCH, 4, seconds);
        if (!t) run_memory(&b);
        stop_worker(&b);
    }
    tg_buf_fini(&b.out);
    tg_arena_fini(&b.arena);
    tg_msg_pool_release(&b.pool);
    free(b.us);
    return 0;
}
