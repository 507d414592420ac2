/* Which files of a model folder are its weights: what config.json names, links to nowhere, shards that share a tensor. */
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/nn/model.h"
#include "tests/support/small_model.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tg_error err;

TEST(a_link_to_nowhere_is_named) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("links"), &err));
    const char *const names[] = {"links/model.safetensors", "links/config.json"};
    for (size_t i = 0; i < TG_COUNT_OF(names); i++) {
        CHECK_EQ(remove(tg_small_path(names[i])), 0);
        CHECK_EQ(symlink("../blobs/gone", tg_small_path(names[i])), 0);
        CHECK_EQ(tg_model_open(&back, be, tg_small_path("links"), 0, 1, &err), TG_NOINPUT);
        char says[80];
        snprintf(says, sizeof says, "%s: is a link to a file that is not there", names[i]);
        CHECK(strstr(err.msg, says) != NULL);
    }
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

/* The config.json of tg_small_path(name) with one more key in front. */
static void add_key(const char *name, const char *key) {
    tg_buf text = {0}, more = {0};
    CHECK_OK(tg_file_read(tg_small_path(name), 1 << 16, &text, &err));
    tg_buf_printf(&more, "{%s, %s", key, strchr(text.data, '{') + 1);
    CHECK_OK(tg_file_write_atomic(tg_small_path(name), more.data, more.len, &err));
    tg_buf_fini(&text);
    tg_buf_fini(&more);
}

TEST(weights_that_the_config_names_go_before_others) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *other, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_create(&other, be, &a, 0, 4, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("named"), &err));
    CHECK_EQ(
        rename(tg_small_path("named/model.safetensors"), tg_small_path("named/its.safetensors")),
        0);
    REQUIRE_OK(tg_model_save(other, tg_small_path("other"), &err));
    CHECK_EQ(
        rename(tg_small_path("other/model.safetensors"), tg_small_path("named/model.safetensors")),
        0);
    add_key("named/config.json", "\"transformers_weights\": \"its.safetensors\"");
    REQUIRE_OK(tg_model_open(&back, be, tg_small_path("named"), 0, 1, &err));
    CHECK(tg_small_same(m, back));
    /* a copy has its weights under the usual name */
    CHECK_OK(tg_model_save(back, tg_small_path("copied"), &err));
    tg_model_destroy(&back);
    REQUIRE_OK(tg_model_open(&back, be, tg_small_path("copied"), 0, 1, &err));
    CHECK(tg_small_same(m, back));
    tg_model_destroy(&back);
    CHECK_EQ(remove(tg_small_path("named/its.safetensors")), 0);
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("named"), 0, 1, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "named/its.safetensors: no such file") != NULL);
    static const char *const bad[] = {"\"../x.safetensors\"", "\"pytorch_model.bin\"", "3"};
    for (size_t i = 0; i < TG_COUNT_OF(bad); i++) {
        char key[80];
        snprintf(key, sizeof key, "\"transformers_weights\": %s", bad[i]);
        CHECK_OK(tg_model_save(m, tg_small_path("named"), &err));
        add_key("named/config.json", key);
        CHECK_EQ(tg_model_open(&back, be, tg_small_path("named"), 0, 1, &err), TG_DATA);
        CHECK(strstr(err.msg, "config.json: transformers_weights: expected the name") != NULL);
    }
    tg_model_destroy(&m);
    tg_model_destroy(&other);
    tg_backend_close(&be);
}

TEST(a_tensor_in_two_shards_is_refused_with_both) {
    tg_backend *be = tg_small_backend();
    tg_arch a = tg_small_arch();
    tg_model *m, *back;
    REQUIRE_OK(tg_model_create(&m, be, &a, 0, 3, &err));
    REQUIRE_OK(tg_model_save(m, tg_small_path("twice"), &err));
    CHECK_EQ(rename(tg_small_path("twice/model.safetensors"), tg_small_path("twice/one")), 0);
    REQUIRE_OK(tg_model_save(m, tg_small_path("twice"), &err));
    CHECK_EQ(rename(tg_small_path("twice/model.safetensors"), tg_small_path("twice/two")), 0);
    const char *index = "{\"weight_map\": {\"a\": \"one\", \"b\": \"two\"}}";
    CHECK_OK(tg_file_write_atomic(tg_small_path("twice/model.safetensors.index.json"), index,
                                  strlen(index), &err));
    CHECK_EQ(tg_model_open(&back, be, tg_small_path("twice"), 0, 1, &err), TG_DATA);
    CHECK(strstr(err.msg, "twice/two: tensor \"transformer.") && strstr(err.msg, "twice/one too"));
    tg_model_destroy(&m);
    tg_backend_close(&be);
}

TEST_MAIN
