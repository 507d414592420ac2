/* A server in a thread of the test, with a reward that waits at a gate. */
#include "tests/support/server_case.h"

#include "common/base/file.h"
#include "common/config/tree.h"
#include "env-server/reward/reward.h"
#include "env-server/server/server.h"
#include "proto/codec.h"
#include "tests/support/tg_test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A reward that waits until it is let go. */
atomic_int gate_open, scoring, scored;
static bool vary; /* set before the server starts */
static tg_status slow_score(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err) {
    (void)state, (void)err;
    atomic_fetch_add(&scoring, 1);
    for (int gate; !(gate = atomic_load(&gate_open)) || (gate == 2 && in[0].n_tokens > 1);)
        usleep(500);
    atomic_fetch_sub(&scoring, 1);
    for (size_t i = 0; i < n; i++) {
        int calls =
            atomic_fetch_add(&scored, 1); /* never the same number twice, when not deterministic */
        out[i] =
            (tg_reward_value){TG_REWARD_OK, (double)in[i].n_tokens + 1e-3 * (vary ? calls : 0)};
    }
    return TG_OK;
}
static const tg_opt no_options[] = {TG_OPT_END};
static const tg_reward_ops slow = {
    .entry = {.name = "slow", .summary = "", .options = no_options, .built = true},
    .slow = true,
    .deterministic = true,
    .score = slow_score};
static const tg_reward_ops varying = {
    .entry = {.name = "slow", .summary = "", .options = no_options, .built = true},
    .slow = true,
    .score = slow_score};

static void *serve(void *arg) {
    server_case *f = arg;
    tg_error err = {0};
    tg_server_opts o = {.bind = f->address, .threads = 4, .parent_fd = -1, .heartbeat_ms = 200};
    o.capacity = f->capacity;
    f->status = tg_server_run(f->env, &o, &err);
    if (f->status != TG_OK) fprintf(stderr, "server: %s\n", err.msg);
    return NULL;
}

static bool start_with(server_case *f, const char *name, const tg_reward_ops *reward,
                       int prompt_length, const char *datapool) {
    char yaml[1024];
    snprintf(yaml, sizeof yaml,
             "tokenizer: {model_name: \"%s\"}\n"
             "reward_fn: {id: sentences_with_dates}\n"
             "datapool: %s\n"
             "env: {args: {max_prompt_length: %d, max_episode_length: 4}}\n"
             "alg: {id: ppo}\ntrain_evaluation: {metrics: [{id: dates}]}\n",
             tg_test_path("golden/env/tokenizer"), datapool, prompt_length);
    snprintf(f->address, sizeof f->address, "ipc://%s/%s", tg_test_tmpdir(), name);
    tg_arena arena = {0};
    tg_error err = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, &err);
    if (st == TG_OK) st = tg_run_config_init(&f->config, &arena, root, &err);
    if (st == TG_OK) st = tg_env_settings_read(&f->settings, &f->config, &err);
    if (reward) f->settings.reward.entry = &reward->entry;
    if (st == TG_OK) st = tg_env_open(&f->env, &f->settings, &err);
    if (!tg_check(st == TG_OK, __FILE__, __LINE__, "fixture: %s", err.msg)) return false;
    CHECK_EQ(f->env->slow_rewards, reward != NULL);
    vary = reward == &varying;
    atomic_store(&gate_open, 0);
    return pthread_create(&f->thread, NULL, serve, f) == 0;
}

static bool start(server_case *f, const char *name, const tg_reward_ops *reward) {
    memset(f, 0, sizeof *f);
    f->capacity = 8;
    return start_with(f, name, reward, 8, "{id: dummy_pool, args: {prompt: \"Hello\"}}");
}

bool server_case_start_long(server_case *f, const char *name, int tokens, int slots) {
    char path[300], pool[400];
    tg_buf row = {0};
    tg_error err = {0};
    memset(f, 0, sizeof *f);
    f->capacity = slots;
    snprintf(path, sizeof path, "%s/%s.jsonl", tg_test_tmpdir(), name);
    snprintf(pool, sizeof pool, "{id: jsonl, args: {path: \"%s\"}}", path);
    tg_buf_puts(&row, "{\"prompt\": \"");
    for (int i = 0; i < tokens; i++) tg_buf_puts(&row, "z");
    tg_buf_puts(&row, "\"}\n");
    CHECK_OK(tg_file_write_atomic(path, row.data, row.len, &err));
    tg_buf_fini(&row);
    return start_with(f, name, NULL, tokens, pool);
}

bool server_case_start(server_case *f, const char *name) {
    return start(f, name, &slow);
}

bool server_case_start_varying(server_case *f, const char *name) {
    return start(f, name, &varying);
}

bool server_case_start_quick(server_case *f, const char *name) {
    return start(f, name, NULL);
}

void server_case_finish(server_case *f) {
    atomic_store(&gate_open, 1);
    kill(getpid(), SIGTERM);
    pthread_join(f->thread, NULL);
    CHECK_EQ(f->status, TG_OK);
    tg_env_close(&f->env);
    tg_run_config_fini(&f->config);
}

void server_case_reset(env_client *c, uint32_t n) {
    tg_reset_item items[8] = {0};
    for (uint32_t i = 0; i < n; i++)
        items[i] = (tg_reset_item){.slot = 10 + i, .episode = 1, .split = TG_SPLIT_TRAIN};
    tg_reset_reply *r = env_client_reset(c, items, n);
    CHECK(r && r->n == n);
    for (uint32_t i = 0; r && i < n; i++) CHECK_EQ(r->items[i].code, TG_CODE_OK);
    tg_msg_free(r);
}
