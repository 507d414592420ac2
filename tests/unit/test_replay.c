/* Recorded PPO iterations of RL4LMs (tests/golden/rl4lms), replayed on every backend; and proof that the replay can fail. */
#include "tests/support/tg_test.h"

#include "common/base/file.h"
#include "common/nn/backend.h"
#include "tests/support/replay.h"

#include <stdlib.h>
#include <unistd.h>

static tg_error err;

TEST(recorded_updates_are_reproduced_on_every_backend) {
    for (const struct tg_backend_ops *const *b = tg_backend_list(); *b; b++) {
        tg_replay_result result;
        tg_replay_opts opts = {.backend = (*b)->name, .out = stdout};
        REQUIRE_OK(tg_replay(tg_test_path("golden/rl4lms"), &opts, &result, &err));
        CHECK_EQ(result.cases, 9);
        CHECK_EQ(result.skipped, 0);
        CHECK_EQ(result.failed, 0);
        CHECK(result.passed >= 390);
    }
}

/* Copies a case with one value of its recording changed. */
static const char *changed_case(const char *name, const char *section, const char *key,
                                json_t *value) {
    static char dir[512];
    char from[512], to[600];
    snprintf(dir, sizeof dir, "%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_dir_create(dir, &err));
    const char *source = tg_test_path("golden/rl4lms/ppo-gpt2-a");
    snprintf(from, sizeof from, "%s/recording.json", source);
    json_t *root = json_load_file(from, 0, NULL);
    if (!CHECK(root)) return dir;
    json_object_set_new(section ? json_object_get(root, section) : root, key, value);
    snprintf(to, sizeof to, "%s/recording.json", dir);
    CHECK_EQ(json_dump_file(root, to, JSON_REAL_PRECISION(17)), 0);
    json_decref(root);
    static const char *const files[] = {"initial.safetensors", "final.safetensors"};
    for (int i = 0; i < 2; i++) {
        char *real = realpath(source, NULL);
        snprintf(from, sizeof from, "%s/%s", real ? real : source, files[i]);
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        free(real);
        CHECK_EQ(symlink(from, to), 0);
    }
    return dir;
}

static void replay_changed(const char *dir, tg_replay_result *result) {
    FILE *nowhere = fopen("/dev/null", "w");
    REQUIRE(nowhere);
    tg_replay_opts opts = {
        .backend = "ref", .out = nowhere, .models = tg_test_path("golden/rl4lms/models")};
    CHECK_OK(tg_replay(dir, &opts, result, &err));
    fclose(nowhere);
}

TEST(a_changed_recording_fails) {
    const struct {
        const char *section, *key;
        double value;
    } cases[] = {
        {"hyperparameters", "learning_rate", 0.0011}, {"hyperparameters", "clip_range", 0.3},
        {"hyperparameters", "ent_coef", 0.02},        {"hyperparameters", "vf_coef", 0.6},
        {"hyperparameters", "gamma", 0.98},           {"hyperparameters", "clip_range_vf", 0.05},
        {"hyperparameters", "batch_size", 13},        {"hyperparameters", "target_kl", 0.01},
        {"hyperparameters", "max_grad_norm", 0.6},    {"rollout", "kl_coeff_before", 0.21},
        {"rollout", "kl_coeff_after", 0.2041},        {"hyperparameters", "norm_reward", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "changed-%zu", i);
        tg_replay_result result;
        replay_changed(
            changed_case(name, cases[i].section, cases[i].key, json_real(cases[i].value)), &result);
        tg_check(result.failed > 0, __FILE__, __LINE__, "%s = %g passes", cases[i].key,
                 cases[i].value);
    }
}

TEST(what_cannot_be_replayed_is_counted) {
    tg_replay_result result;
    replay_changed(changed_case("other", NULL, "algorithm", json_string("dqn")), &result);
    CHECK_EQ(result.failed, 1);
    replay_changed(
        changed_case("lost", NULL, "initial_weights_file", json_string("none.safetensors")),
        &result);
    CHECK(result.skipped == 0 && result.failed == 1);
    replay_changed(changed_case("hollow", NULL, "buffer", json_object()), &result);
    CHECK_EQ(result.failed, 1);
    tg_replay_opts opts = {.backend = "ref", .out = stdout};
    CHECK_EQ(tg_replay(tg_test_path("golden/ppo"), &opts, &result, &err), TG_NOINPUT);
    CHECK_EQ(tg_replay("/nonexistent", &opts, &result, &err), TG_NOINPUT);
}

TEST_MAIN
