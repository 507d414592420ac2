/* The top level of a run's config: sections, our own keys, messages, and a resolved config that
 * reloads to itself. */
#include "common/base/file.h"
#include "common/config/run_config.h"
#include "tests/support/tg_test.h"

#define SECTIONS                                                                                   \
    "tokenizer: {model_name: gpt2}\nreward_fn: {id: x}\ndatapool: {id: d}\nenv: {n_envs: 2}\n"     \
    "alg: {id: ppo}\ntrain_evaluation: {n_iters: 3, metrics: [{id: a}]}\n"

static tg_status load(tg_run_config *c, const char *text, const char *override, tg_error *err) {
    char path[256];
    snprintf(path, sizeof path, "%s/c.yml", tg_test_tmpdir());
    tg_status st = tg_file_write_atomic(path, text, strlen(text), err);
    return st == TG_OK ? tg_run_config_load(c, path, &override, override != NULL, err) : st;
}

TEST(defaults) {
    tg_run_config c;
    tg_error err = {0};
    REQUIRE_OK(load(&c, SECTIONS, NULL, &err));
    CHECK_EQ(c.seed, 0);
    CHECK_EQ(c.workers, 2);
    CHECK(!c.compat && !c.supervised);
    CHECK_STR(c.learner.backend, "cpu");
    CHECK_EQ(c.learner.keep_checkpoints, 2);
    CHECK(c.learner.keep_best && !c.learner.memory_limit_bytes);
    CHECK(!c.pool.bind && !c.pool.connect);
    CHECK_EQ(c.pool.call_timeout_ms, 60000);
    CHECK_STR(tg_node_get(c.tokenizer, "model_name")->text, "gpt2");
    tg_run_config_fini(&c);
}

TEST(values_and_overrides) {
    tg_run_config c;
    tg_error err = {0};
    REQUIRE_OK(load(&c,
                    SECTIONS "seed: 9\ncompat: rl4lms\nworkers: 5\nlearner: {memory_limit: 2G, "
                             "threads: 3}\npool: {bind: 'ipc://x'}\n",
                    "seed=11", &err));
    CHECK_EQ(c.seed, 11);
    CHECK_STR(c.compat, "rl4lms");
    CHECK_EQ(c.workers, 5);
    CHECK_EQ(c.learner.memory_limit_bytes, 2LL << 30);
    CHECK_EQ(c.learner.threads, 3);
    CHECK_STR(c.pool.bind, "ipc://x");
    tg_run_config_fini(&c);
}

TEST(supervised_needs_no_environment) {
    tg_run_config c;
    tg_error err = {0};
    REQUIRE_OK(load(&c,
                    "tokenizer: {}\ndatapool: {}\nalg: {id: supervised}\ntrain_evaluation: {}\n",
                    NULL, &err));
    CHECK(c.supervised && !c.env && !c.reward_fn);
    tg_run_config_fini(&c);
}

static void check_message(const char *text, const char *override, const char *wanted, int line) {
    tg_run_config c;
    tg_error err = {0};
    tg_status st = load(&c, text, override, &err);
    tg_check(st == TG_CONFIG && strstr(err.msg, wanted), __FILE__, line,
             "%s, found \"%s\", expected \"%s\"", tg_status_name(st), err.msg, wanted);
    if (st == TG_OK) tg_run_config_fini(&c);
}
#define CHECK_MESSAGE(text, wanted) check_message(text, NULL, wanted, __LINE__)

TEST(messages) {
    CHECK_MESSAGE(SECTIONS "trainevaluation: {}\n",
                  ":7: trainevaluation: unknown key, did you mean \"train_evaluation\"?");
    CHECK_MESSAGE(SECTIONS "seed: -1\n", ":7: seed: expected a whole number");
    CHECK_MESSAGE(SECTIONS "compat: trlx\n",
                  ":7: compat: expected one of rl4lms or null, found trlx");
    CHECK_MESSAGE(SECTIONS "learner: {backend: cuda}\n",
                  ":7: learner.backend: expected one of cpu, ref, found cuda");
    CHECK_MESSAGE(SECTIONS "learner: {memory_limit: lots}\n",
                  ":7: learner.memory_limit: expected a size such as 8G");
    CHECK_MESSAGE(SECTIONS "pool: {min_worker: 1}\n",
                  ":7: pool.min_worker: unknown key, did you mean \"min_workers\"?");
    CHECK_MESSAGE("tokenizer: {}\n", "the section \"alg\" is missing");
    CHECK_MESSAGE(
        "alg: {id: ppo}\ntokenizer: {}\nreward_fn: {}\ndatapool: {}\ntrain_evaluation: {}\n",
        "the section \"env\" is missing");
    CHECK_MESSAGE("alg: {}\n", ":1: alg.id: is required");
    CHECK_MESSAGE("alg: {id: ppo}\ntokenizer: gpt2\n",
                  ":2: tokenizer: expected a section (key: value lines), found gpt2");
    CHECK_MESSAGE("- a\n", "expected a config with the sections");
    CHECK_MESSAGE("", "expected a config with the sections");
    check_message(SECTIONS, "sed=5", "command line: sed: unknown key, did you mean \"seed\"?",
                  __LINE__);
}

TEST(an_environment_needs_no_algorithm) {
    tg_error err = {0};
    tg_run_config c;
    char path[256];
    CHECK_EQ(load(&c, "tokenizer: {}\ndatapool: {}\nenv: {}\n", NULL, &err), TG_CONFIG);
    snprintf(path, sizeof path, "%s/c.yml", tg_test_tmpdir()); /* written by load() */
    tg_status st = tg_run_config_load_env(&c, path, NULL, 0, &err);
    CHECK_EQ(st, TG_OK);
    if (st == TG_OK) {
        CHECK(!c.alg && !c.reward_fn && !c.train_evaluation && c.env && !c.supervised);
        tg_run_config_fini(&c);
    }
    const char *with_alg[] = {"alg.id=ppo"};
    CHECK_EQ(tg_run_config_load_env(&c, path, with_alg, 1, &err), TG_CONFIG);
}

TEST(resolved_config_reloads_to_itself) {
    tg_run_config c, again;
    tg_error err = {0};
    REQUIRE_OK(load(&c, SECTIONS "learner: {memory_limit: 8G}\n", NULL, &err));
    const char *env_text = "{\"env\": {\"n_envs\": 2, \"args\": {\"x\": 1}}, \"train_evaluation\": "
                           "{\"metrics\": [{\"id\": \"a\", \"args\": {}}]}}";
    const char *learner_text = "{\"alg\": {\"id\": \"ppo\", \"args\": {\"lr\": 1e-6}}, "
                               "\"train_evaluation\": {\"n_iters\": 3, \"metrics\": 1}}";
    tg_node *env, *learner;
    REQUIRE_OK(tg_tree_parse(&c.arena, "env", env_text, strlen(env_text), &env, &err));
    REQUIRE_OK(
        tg_tree_parse(&c.arena, "learner", learner_text, strlen(learner_text), &learner, &err));
    tg_buf first = {0}, second = {0};
    tg_run_config_json(&c, (const tg_node *const[]){env, learner}, 2, &first);
    REQUIRE_OK(load(&again, first.data, NULL, &err));
    CHECK_STR(tg_node_at(again.root, "train_evaluation.metrics.0.id")->text, "a");
    CHECK_STR(tg_node_at(again.root, "train_evaluation.n_iters")->text, "3");
    CHECK_STR(tg_node_at(again.root, "alg.args.lr")->text, "1.0e-06");
    CHECK_STR(tg_node_at(again.root, "tokenizer.model_name")->text, "gpt2");
    CHECK_EQ(again.learner.memory_limit_bytes, 8LL << 30);
    tg_run_config_json(&again, NULL, 0, &second);
    CHECK_STR(first.data, second.data);
    tg_buf_fini(&first);
    tg_buf_fini(&second);
    tg_run_config_fini(&c);
    tg_run_config_fini(&again);
}

TEST(sizes) {
    uint64_t n = 0;
    CHECK(tg_parse_size("10", &n) && n == 10);
    CHECK(tg_parse_size("2K", &n) && n == 2048);
    CHECK(tg_parse_size("3 GiB", &n) && n == 3ull << 30);
    CHECK(tg_parse_size("1tb", &n) && n == 1ull << 40);
    CHECK(!tg_parse_size("", &n) && !tg_parse_size("G", &n) && !tg_parse_size("1.5G", &n) &&
          !tg_parse_size("-1", &n));
    CHECK(!tg_parse_size("5X", &n) && !tg_parse_size("99999999999T", &n) &&
          !tg_parse_size("5GG", &n));
}

TEST_MAIN
