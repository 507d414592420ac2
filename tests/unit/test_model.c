/* Models: their tensors, how fresh ones are drawn, and that what is saved opens again bit for bit. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/model.h"
#include "common/nn/safetensors.h"
#include "tests/support/small_model.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>

static tg_error err;

TEST(table_has_every_tensor_once_and_aligned) {
    tg_arch a = tg_small_arch();
    a.value_head = true;
    tg_params p;
    REQUIRE_OK(tg_params_init(&p, &a, &err));
    CHECK_EQ(p.n, 2 + 2 * 12 + 2 + 1);
    size_t end = 0;
    for (size_t i = 0; i < p.n; i++) {
        CHECK_EQ(p.list[i].offset % 16, 0);
        CHECK(p.list[i].offset >= end && p.list[i].offset < end + 16);
        end = p.list[i].offset + p.list[i].count;
        CHECK(tg_params_find(&p, p.list[i].name) == &p.list[i]);
        CHECK(tg_params_role(&p, p.list[i].role, p.list[i].layer) == &p.list[i]);
    }
    CHECK(p.total >= end && p.total < end + 16);
    const tg_param *q = tg_params_find(&p, "transformer.h.1.attn.c_attn.weight");
    REQUIRE(q != NULL);
    CHECK(q->shape[0] == 8 && q->shape[1] == 24 && q->layer == 1);
    CHECK(tg_params_find(&p, "lm_head.weight") == NULL);
    tg_params_fini(&p);
    a.tied_head = false;
    REQUIRE_OK(tg_params_init(&p, &a, &err));
    CHECK(tg_params_find(&p, "lm_head.weight") != NULL);
    tg_params_fini(&p);
}

TEST(fresh_model_has_gpt2_statistics_and_depends_on_the_seed) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    a.vocab_size = 500, a.width = 64, a.head_dim = 32, a.mlp_width = 256;
    tg_model *m, *same, *other;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_create(&same, be, &a, TG_MODEL_VALUE_HEAD, 1, &err));
    REQUIRE_OK(tg_model_create(&other, be, &a, TG_MODEL_VALUE_HEAD, 2, &err));
    CHECK(tg_small_same(m, same));
    CHECK(!tg_small_same(m, other));
    CHECK_EQ(be->bytes_used, tg_model_bytes(&a, TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD) +
                                 2 * tg_model_bytes(&a, TG_MODEL_VALUE_HEAD));
    static const struct {
        const char *name;
        size_t n;
        double mean, sd;
    } table[] = {
        {"transformer.wte.weight", 32000, 0, 0.02},
        {"transformer.h.1.mlp.c_proj.weight", 16384, 0, 0.01},
        {"transformer.h.0.attn.c_attn.weight", 12288, 0, 0.02},
        {"transformer.h.0.attn.c_attn.bias", 192, 0, 0},
        {"transformer.ln_f.weight", 64, 1, 0},
        {"value_head.weight", 64, 0, 0.125 / 1.7320508},
    };
    float *x = malloc(32000 * sizeof *x);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        REQUIRE_OK(tg_model_get(m, table[i].name, x, table[i].n, &err));
        double sum = 0, sq = 0, max = 0;
        for (size_t k = 0; k < table[i].n; k++) {
            sum += (double)x[k];
            sq += (double)x[k] * (double)x[k];
            max = fmax(max, fabs((double)x[k]));
        }
        double mean = sum / (double)table[i].n,
               sd = sqrt(fmax(0, sq / (double)table[i].n - mean * mean));
        CHECK_NEAR(mean, table[i].mean, 5 * table[i].sd / sqrt((double)table[i].n));
        CHECK_NEAR(sd, table[i].sd, table[i].sd * 3 / sqrt((double)table[i].n));
        if (i == 5) CHECK(max <= 0.125);
    }
    CHECK_OK(tg_model_get_grad(m, "transformer.ln_f.weight", x, 64, &err));
    CHECK(x[0] == 0 && x[63] == 0);
    CHECK_EQ(tg_model_get_grad(same, "transformer.ln_f.weight", x, 64, &err), TG_DATA);
    CHECK_EQ(tg_model_get(m, "nothing", x, 64, &err), TG_DATA);
    CHECK_EQ(tg_model_get(m, "transformer.ln_f.weight", x, 63, &err), TG_DATA);
    free(x);
    tg_model_destroy(&m);
    tg_model_destroy(&same);
    tg_model_destroy(&other);
    CHECK_EQ(be->bytes_used, 0);
    tg_backend_close(&be);
}

TEST(saved_folder_opens_with_the_same_bits) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    for (int tied = 0; tied < 2; tied++) {
        a.tied_head = tied;
        tg_model *m, *back;
        REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 5, &err));
        const char *folder = tg_small_path(tied ? "tied/" : "untied");
        REQUIRE_OK(tg_model_save(m, folder, &err));
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(tg_small_same(m, back));
        CHECK(!memcmp(&m->arch, &back->arch, sizeof a));
        tg_model_destroy(&back);
        /* the value head is not in model.safetensors, and is drawn again when its file is gone */
        char file[400];
        snprintf(file, sizeof file, "%s/value_head.safetensors", folder);
        CHECK(tg_path_exists(file));
        CHECK_EQ(remove(file), 0);
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(!tg_small_same(m, back));
        tg_model_destroy(&back);
        REQUIRE_OK(tg_model_open(&back, be, folder, TG_MODEL_VALUE_HEAD, 5, &err));
        CHECK(tg_small_same(m, back));
        CHECK_STR(back->folder, folder);
        /* saving over it keeps other files */
        snprintf(file, sizeof file, "%s/tokenizer.json", folder);
        CHECK_OK(tg_file_write_atomic(file, "{}", 2, &err));
        CHECK_OK(tg_model_save(back, folder, &err));
        CHECK(tg_path_exists(file));
        tg_buf text = {0};
        snprintf(file, sizeof file, "%s/config.json", folder);
        CHECK_OK(tg_file_read(file, 1 << 20, &text, &err));
        CHECK(text.data && strstr(text.data, "\"layer_norm_epsilon\": 1e-5,"));
        tg_buf_fini(&text);
        tg_model_destroy(&back);
        tg_model_destroy(&m);
    }
    tg_backend_close(&be);
}

TEST(saved_in_shards_and_whole_again_it_is_the_same_model) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 5, &err));
    static const size_t sizes[] = {1, 600, 0, 2000};
    for (size_t i = 0; i < 4; i++) { /* one tensor a file, a few files, one file, a few again */
        REQUIRE_OK(
            tg_model_save_as(m, tg_small_path("shards"), (tg_save_opts){TG_F32, sizes[i]}, &err));
        CHECK_EQ(tg_path_exists(tg_small_path("shards/model.safetensors")), sizes[i] == 0);
        REQUIRE_OK(
            tg_model_open(&back, be, tg_small_path("shards"), TG_MODEL_VALUE_HEAD, 99, &err));
        CHECK(tg_small_same(m, back));
        tg_model_destroy(&back);
    }
    REQUIRE_OK(tg_model_save_as(m, tg_small_path("half"), (tg_save_opts){TG_BF16, 600}, &err));
    REQUIRE_OK(tg_model_open(&back, be, tg_small_path("half"), TG_MODEL_VALUE_HEAD, 99, &err));
    CHECK(!tg_small_same(m, back));
    for (size_t i = 0; i < m->params.total; i++)
        CHECK_NEAR((double)back->data[i], (double)m->data[i], fabs((double)m->data[i]) / 256);
    tg_model_destroy(&back);
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST(unknown_config_keys_survive_a_save) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 5, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("keep"), &err));
    tg_model_destroy(&m);
    const char *text =
        "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":2,\"n_head\":2,\"vocab_size\":11,"
        "\"n_positions\":7,\"eos_token_id\":50256,\"dtype\":\"bfloat16\",\"my_key\":[1,2]}";
    CHECK_OK(tg_file_write_atomic(tg_small_path("keep/config.json"), text, strlen(text), &err));
    text = "{\"temperature\": 0.25}";
    CHECK_OK(tg_file_write_atomic(tg_small_path("keep/generation_config.json"), text, strlen(text),
                                  &err));
    REQUIRE_OK(tg_model_open(&m, be, tg_small_path("keep"), 0, 1, &err));
    CHECK_EQ(m->arch.eos_id, -1);
    tg_model *copy;
    REQUIRE_OK(tg_model_clone(&copy, m, 0, 1, &err));
    tg_model_destroy(&m);
    REQUIRE_OK(tg_model_save(copy, tg_small_path("kept"), &err));
    tg_buf got = {0};
    CHECK_OK(tg_file_read(tg_small_path("kept/config.json"), 1 << 20, &got, &err));
    REQUIRE(got.data != NULL);
    CHECK(strstr(got.data, "my_key") != NULL);
    CHECK(strstr(got.data, "50256") != NULL);
    CHECK(strstr(got.data, "\"dtype\": \"float32\"") != NULL);
    CHECK(strstr(got.data, "bfloat16") == NULL && strstr(got.data, "torch_dtype") == NULL);
    tg_buf_reset(&got);
    CHECK_OK(tg_file_read(tg_small_path("kept/generation_config.json"), 1 << 20, &got, &err));
    CHECK(strstr(got.data, "0.25") != NULL);
    tg_buf_fini(&got);
    tg_model_destroy(&copy);
    tg_backend_close(&be);
}

TEST(clone_copies_and_adds_or_drops_the_value_head) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *plain, *again;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD | TG_MODEL_TRAINABLE, 3, &err));
    REQUIRE_OK(tg_model_clone(&plain, m, 0, 0, &err));
    CHECK(tg_params_find(&plain->params, "value_head.weight") == NULL);
    CHECK(plain->grad == NULL);
    REQUIRE_OK(tg_model_clone(&again, plain, TG_MODEL_VALUE_HEAD, 3, &err));
    CHECK(tg_small_same(m, again));
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, back[8];
    CHECK_OK(tg_model_set(m, "value_head.weight", ones, 8, &err));
    CHECK_OK(tg_model_get(m, "value_head.weight", back, 8, &err));
    CHECK(!memcmp(ones, back, sizeof ones));
    CHECK(!tg_small_same(m, again));
    tg_model_destroy(&m);
    tg_model_destroy(&plain);
    tg_model_destroy(&again);
    tg_backend_close(&be);
}

TEST(out_of_memory_is_reported_at_every_allocation) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m;
    REQUIRE_OK(tg_model_create(&m, be, &a, TG_MODEL_VALUE_HEAD, 3, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("oom"), &err));
    tg_model_destroy(&m);
    bool done = false;
    int failures = 0;
    for (int n = 0; n < 2000 && !done; n++) {
        tg_alloc_fail_after(n);
        tg_status st = tg_model_open(&m, be, tg_small_path("oom"),
                                     TG_MODEL_TRAINABLE | TG_MODEL_VALUE_HEAD, 1, &err);
        bool failed = tg_alloc_calls() && st != TG_OK;
        tg_alloc_fail_after(-1);
        done = st == TG_OK;
        failures += failed;
        if (!done) CHECK_EQ(st, TG_NOMEM);
        tg_model_destroy(&m);
        CHECK_EQ(be->bytes_used, 0);
    }
    CHECK(done && failures > 10);
    tg_backend_close(&be);
}

TEST_MAIN
