/* Checkpoints: whole or absent, verified before they are loaded, and the run folder cut back to where they were taken. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/model.h"
#include "learner/train/checkpoint.h"
#include "learner/train/run.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fixture {
    tg_backend *be;
    tg_model *policy, *value;
    tg_optim *optim;
    tg_checkpoint_nets nets;
    char dir[300];
} fixture;

static bool setup(fixture *f) {
    static int count;
    *f = (fixture){0};
    tg_error err;
    tg_arch arch = {.family = "gpt2",
                    .n_layers = 1,
                    .n_heads = 2,
                    .n_kv_heads = 2,
                    .head_dim = 4,
                    .width = 8,
                    .mlp_width = 32,
                    .vocab_size = 11,
                    .max_positions = 6,
                    .norm_eps = 1e-5f,
                    .tied_head = true,
                    .bos_id = 0,
                    .eos_id = 0,
                    .pad_id = -1};
    snprintf(f->dir, sizeof f->dir, "%s/run%d", tg_test_tmpdir(), count++);
    tg_optim_opts opts = {.kind = "adamw", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
    CHECK_OK(tg_dir_create(f->dir, &err));
    if (tg_backend_open(&f->be, "ref", 1, &err) != TG_OK) return CHECK(false);
    CHECK_OK(tg_model_create(&f->policy, f->be, &arch, TG_MODEL_TRAINABLE, 1, &err));
    CHECK_OK(tg_model_create(&f->value, f->be, &arch, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 2,
                             &err));
    if (!f->policy || !f->value) return false;
    tg_model *models[] = {f->policy, f->value};
    CHECK_OK(tg_optim_create(&f->optim, models, 2, &opts, &err));
    f->nets = (tg_checkpoint_nets){{f->policy, f->value}, {"policy", "value"}, {0, 1}, 2, f->optim};
    return f->optim != NULL;
}

static void teardown(fixture *f) {
    tg_optim_destroy(&f->optim);
    tg_model_destroy(&f->policy);
    tg_model_destroy(&f->value);
    tg_backend_close(&f->be);
}

/* A moment in f32 is one block, and the first tensor's is its beginning. */
static float *moment_of(const fixture *f, int model, int k) {
    tg_optim_part parts[2];
    CHECK_EQ(tg_optim_parts(f->optim, model, k, 0, parts), 1);
    return parts[0].device;
}

static const float *block(const fixture *f, int i) {
    float *const all[] = {f->policy->data,    f->value->data,     moment_of(f, 0, 0),
                          moment_of(f, 0, 1), moment_of(f, 1, 0), moment_of(f, 1, 1)};
    return all[i];
}
static size_t block_len(const fixture *f, int i) {
    return (i == 1 || i >= 4 ? f->value : f->policy)->params.total;
}

/* Every block gets values of its own (the ref backend's memory is ordinary memory). */
static void fill(fixture *f, float base) {
    for (int i = 0; i < 6; i++) {
        const tg_params *p = i == 1 || i >= 4 ? &f->value->params : &f->policy->params;
        float *b = (float *)(size_t)block(f, i);
        for (size_t k = 0; k < p->n; k++)
            for (size_t e = 0; e < p->list[k].count; e++)
                b[p->list[k].offset + e] = base + (float)i + 0.001f * (float)(e + k);
    }
    tg_optim_set_steps(f->optim, (int64_t)base);
}

static float *snapshot(const fixture *f) {
    size_t total = 0, at = 0;
    for (int i = 0; i < 6; i++) total += block_len(f, i);
    float *all = tg_alloc_array(total, sizeof *all);
    for (int i = 0; i < 6; i++) {
        memcpy(all + at, block(f, i), block_len(f, i) * sizeof *all);
        at += block_len(f, i);
    }
    return all;
}

static bool same(const fixture *f, const float *saved) {
    float *now = snapshot(f);
    size_t total = 0;
    for (int i = 0; i < 6; i++) total += block_len(f, i);
    bool equal = !memcmp(now, saved, total * sizeof *now);
    tg_free(now);
    return equal;
}

static void append(const fixture *f, const char *name, const char *text) {
    char path[400];
    tg_error err;
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    CHECK_OK(tg_file_append(path, text, strlen(text), &err));
}

static long size_of(const fixture *f, const char *name) {
    char path[400];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

static tg_run_state state_at(const fixture *f, int64_t iteration) {
    tg_run_state s = {.iteration = iteration,
                      .evaluated = true,
                      .next_episode = 1ull << 40,
                      .kl_coeff = 0.1 + 0.2,
                      .loss_sum = 1.0 / 3,
                      .loss_n = 7,
                      .score = (double)iteration,
                      .seed = 42,
                      .digest = 0xfeedfacecafebeef};
    tg_error err;
    CHECK_OK(tg_artifacts_measure(f->dir, s.sizes, &err));
    return s;
}

static void save_at(fixture *f, int64_t iteration) {
    tg_run_state s = state_at(f, iteration);
    tg_error err;
    CHECK_OK(tg_checkpoint_save(f->dir, &s, &f->nets, &err));
}

static tg_status resume(fixture *f, tg_run_state *s, bool *found, tg_error *err) {
    *s = (tg_run_state){.seed = 42, .digest = 0xfeedfacecafebeef};
    return tg_checkpoint_resume(f->dir, s, &f->nets, found, err);
}

TEST(what_was_saved_comes_back_bit_for_bit) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 3);
    float *before = snapshot(&f);
    append(&f, "rollout_info.jsonl", "one\n");
    tg_run_state saved = state_at(&f, 5), got;
    tg_error err;
    CHECK_OK(tg_checkpoint_save(f.dir, &saved, &f.nets, &err));
    append(&f, "rollout_info.jsonl", "two\n");
    append(&f, "test_split_metrics.jsonl", "later\n");
    fill(&f, 9);
    CHECK(!same(&f, before));
    bool found;
    REQUIRE_OK(resume(&f, &got, &found, &err));
    CHECK(found && same(&f, before));
    CHECK_EQ(tg_optim_steps(f.optim), 3);
    CHECK_EQ(got.iteration, 5);
    CHECK(got.evaluated);
    CHECK(got.next_episode == saved.next_episode);
    CHECK(got.kl_coeff == saved.kl_coeff && got.loss_sum == saved.loss_sum);
    CHECK_EQ(got.loss_n, 7);
    /* lines written after the checkpoint are gone, and files that did not exist then */
    CHECK_EQ(size_of(&f, "rollout_info.jsonl"), 4);
    CHECK_EQ(size_of(&f, "test_split_metrics.jsonl"), -1);
    tg_free(before);
    teardown(&f);
}

TEST(no_checkpoint_is_not_an_error) {
    fixture f;
    REQUIRE(setup(&f));
    tg_run_state s;
    bool found = true;
    tg_error err;
    CHECK_OK(resume(&f, &s, &found, &err));
    CHECK(!found);
    teardown(&f);
}

static void damage(const fixture *f, const char *file, long at) {
    char path[400];
    snprintf(path, sizeof path, "%s/checkpoints/%s", f->dir, file);
    FILE *h = fopen(path, "r+b");
    if (!CHECK(h != NULL)) return;
    fseek(h, at, at < 0 ? SEEK_END : SEEK_SET);
    int c = fgetc(h);
    fseek(h, -1, SEEK_CUR);
    fputc(c ^ 1, h);
    fclose(h);
}

TEST(damaged_ones_are_skipped_and_nothing_of_them_is_loaded) {
    const char *files[] = {"checkpoint_2/policy.safetensors",
                           "checkpoint_2/value.moment1.safetensors", "checkpoint_2/state.json"};
    for (int i = 0; i < 3; i++) {
        fixture f;
        REQUIRE(setup(&f));
        fill(&f, 1);
        float *first = snapshot(&f);
        save_at(&f, 1);
        fill(&f, 2);
        save_at(&f, 2);
        damage(&f, files[i], i < 2 ? -5 : 60);
        tg_run_state s;
        bool found;
        tg_error err;
        CHECK_OK(resume(&f, &s, &found, &err));
        CHECK(found && same(&f, first));
        CHECK_EQ(s.iteration, 1);
        tg_free(first);
        teardown(&f);
    }
}

TEST(a_missing_file_and_a_short_artifact_are_damage) {
    fixture f;
    REQUIRE(setup(&f));
    append(&f, "rollout_info.jsonl", "one\ntwo\n");
    fill(&f, 1);
    save_at(&f, 1);
    char path[400];
    snprintf(path, sizeof path, "%s/checkpoints/checkpoint_1/value.safetensors", f.dir);
    tg_run_state s;
    bool found;
    tg_error err;
    CHECK_OK(resume(&f, &s, &found, &err));
    char rollouts[400];
    snprintf(rollouts, sizeof rollouts, "%s/rollout_info.jsonl", f.dir);
    CHECK_EQ(truncate(rollouts, 3), 0); /* a checkpoint cannot give lines back */
    CHECK_EQ(resume(&f, &s, &found, &err), TG_DATA);
    CHECK(strstr(err.msg, "rollout_info.jsonl") != NULL);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(resume(&f, &s, &found, &err), TG_DATA);
    CHECK(strstr(err.msg, "value.safetensors") != NULL);
    teardown(&f);
}

TEST(a_checkpoint_of_another_run_is_refused) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 1);
    save_at(&f, 1);
    float *before = snapshot(&f);
    tg_run_state s = {.seed = 43, .digest = 0xfeedfacecafebeef};
    bool found;
    tg_error err;
    CHECK_EQ(tg_checkpoint_resume(f.dir, &s, &f.nets, &found, &err), TG_DATA);
    CHECK(strstr(err.msg, "seed 42") != NULL);
    s = (tg_run_state){.seed = 42, .digest = 1};
    CHECK_EQ(tg_checkpoint_resume(f.dir, &s, &f.nets, &found, &err), TG_DATA);
    CHECK(strstr(err.msg, "another config") != NULL);
    CHECK(same(&f, before));
    tg_free(before);
    teardown(&f);
}

TEST(an_interrupted_save_is_not_seen_and_is_cleaned_up) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 1);
    save_at(&f, 1);
    char from[400], to[420];
    snprintf(from, sizeof from, "%s/checkpoints/checkpoint_7.tmp", f.dir);
    snprintf(to, sizeof to, "%s/state.json", from);
    tg_error err;
    CHECK_OK(tg_dir_create(from, &err));
    CHECK_OK(tg_file_write_atomic(to, "{}", 2, &err));
    tg_run_state s;
    bool found;
    CHECK_OK(resume(&f, &s, &found, &err));
    CHECK_EQ(s.iteration, 1);
    CHECK_OK(tg_checkpoint_prune(f.dir, 1, 0, false, &err));
    CHECK(!tg_path_exists(from));
    teardown(&f);
}

TEST(pruning_keeps_the_newest_and_the_best) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    for (int64_t k = 1; k <= 6; k++) {
        tg_run_state s = state_at(&f, k);
        s.score = k == 2 ? 10 : 1;
        CHECK_OK(tg_checkpoint_save(f.dir, &s, &f.nets, &err));
    }
    CHECK_OK(tg_checkpoint_prune(f.dir, 6, 2, true, &err));
    for (int64_t k = 1; k <= 6; k++) {
        char path[400];
        snprintf(path, sizeof path, "%s/checkpoints/checkpoint_%lld", f.dir, (long long)k);
        CHECK_EQ(tg_path_exists(path), k == 2 || k >= 5);
    }
    CHECK_OK(tg_checkpoint_prune(f.dir, 6, 1, false, &err));
    char path[400];
    snprintf(path, sizeof path, "%s/checkpoints/checkpoint_2", f.dir);
    CHECK(!tg_path_exists(path));
    teardown(&f);
}

/* A damaged checkpoint does not push out those that came after the run fell back behind it. */
TEST(what_a_resume_skipped_counts_for_nothing) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 1);
    save_at(&f, 4);
    save_at(&f, 8);
    damage(&f, "checkpoint_8/policy.safetensors", -5);
    tg_run_state s;
    bool found;
    tg_error err;
    REQUIRE_OK(resume(&f, &s, &found, &err));
    CHECK(found && s.iteration == 4);
    save_at(&f, 6);
    CHECK_OK(tg_checkpoint_prune(f.dir, 6, 1, false, &err));
    CHECK_OK(resume(&f, &s, &found, &err));
    CHECK(found && s.iteration == 6);
    teardown(&f);
}

TEST(saving_survives_any_failed_allocation) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 1);
    save_at(&f, 1);
    tg_run_state s = state_at(&f, 2), got;
    bool found, done = false;
    tg_error err;
    for (int n = 0; n < 400 && !done; n++) {
        tg_alloc_fail_after(n);
        done = tg_checkpoint_save(f.dir, &s, &f.nets, &err) == TG_OK;
        tg_alloc_fail_after(-1);
        CHECK_OK(resume(&f, &got, &found, &err)); /* the old one, or the new one complete */
        CHECK(found && (got.iteration == 1 || got.iteration == 2));
    }
    CHECK(done);
    teardown(&f);
}

/* A stop saves the last checkpoint again. Whatever fails then, there is one. */
TEST(saving_again_never_leaves_none) {
    fixture f;
    REQUIRE(setup(&f));
    fill(&f, 1);
    save_at(&f, 1);
    float *before = snapshot(&f);
    tg_run_state s = state_at(&f, 1), got;
    bool found, done = false;
    tg_error err;
    for (int n = 0; n < 400 && !done; n++) {
        tg_alloc_fail_after(n);
        done = tg_checkpoint_save(f.dir, &s, &f.nets, &err) == TG_OK;
        tg_alloc_fail_after(-1);
        CHECK_OK(resume(&f, &got, &found, &err));
        CHECK(found && got.iteration == 1 && same(&f, before));
    }
    CHECK(done);
    tg_free(before);
    teardown(&f);
}

TEST(a_folder_with_a_run_is_not_written_over_unasked) {
    fixture f;
    REQUIRE(setup(&f));
    tg_error err;
    append(&f, "config.json", "{}");
    CHECK_OK(tg_run_folder_prepare(f.dir, false, false,
                                   &err)); /* the front door's config alone is no run */
    append(&f, "rollout_info.jsonl", "x\n");
    append(&f, "epoch_3_val_split_predictions.json", "[]");
    append(&f, "notes.txt", "mine");
    CHECK_EQ(tg_run_folder_prepare(f.dir, false, false, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "--resume") != NULL);
    CHECK_OK(tg_run_folder_prepare(f.dir, true, false, &err));
    CHECK_EQ(size_of(&f, "rollout_info.jsonl"), 2);
    CHECK_OK(tg_run_folder_prepare(f.dir, false, true, &err));
    CHECK_EQ(size_of(&f, "rollout_info.jsonl"), -1);
    CHECK_EQ(size_of(&f, "epoch_3_val_split_predictions.json"), -1);
    CHECK_EQ(size_of(&f, "notes.txt"), 4);
    teardown(&f);
}

TEST_MAIN
