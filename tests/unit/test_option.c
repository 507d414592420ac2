/* Option tables: reading, bounds, messages, dump and reload, descriptions. */
#include "common/base/alloc.h"
#include "common/config/option.h"
#include "tests/support/tg_test.h"

typedef struct demo {
    int64_t n_epochs, top_k, seed;
    double clip_range, target_kl;
    bool shuffle;
    const char *side, *name, *model_name;
    const tg_node *extra;
} demo;

static const tg_opt demo_table[] = {
    TG_OPT_STR_REQUIRED(demo, model_name, "Which model."),
    TG_OPT_INT(demo, n_epochs, "10", 1, 1000, "Passes over the buffer."),
    TG_OPT_INT_OR_NULL(demo, top_k, 1, 1e18, "Keep the k likeliest."),
    TG_OPT_FLOAT(demo, clip_range, "0.2", 0, 1, "PPO's epsilon."),
    TG_OPT_FLOAT_OR_NULL(demo, target_kl, 0, 0, "Stop early beyond this."),
    TG_OPT_BOOL(demo, shuffle, "true", "New order each pass."),
    TG_OPT_STR_ONE_OF(demo, side, "left", "left|right|both", "Where to cut."),
    TG_OPT_STR(demo, name, "5", "A label."),
    TG_OPT_ROW_KEY("lambda", demo, seed, TG_T_INT, 0, "0", 0, 0, NULL,
                   "A key that C could not name."),
    TG_OPT_NODE(demo, extra, "Passed on."),
    TG_OPT_END,
};

static tg_status read_text(const char *text, demo *out, tg_arena *a, tg_error *err) {
    tg_node *root;
    tg_status st = tg_tree_parse(a, "t.yml", text, strlen(text), &root, err);
    return st == TG_OK ? tg_opts_read(demo_table, out, root, "alg.args", a, err) : st;
}

static void check_message(const char *text, const char *wanted, int line) {
    tg_arena a = {0};
    tg_error err = {0};
    demo d;
    tg_status st = read_text(text, &d, &a, &err);
    tg_check(st == TG_CONFIG && !strcmp(err.msg, wanted), __FILE__, line,
             "%s: %s\n    found    %s\n    expected %s", text, tg_status_name(st), err.msg, wanted);
    tg_node *root;
    CHECK_OK(tg_tree_parse(&a, "t.yml", text, strlen(text), &root, &err));
    tg_error again = {0};
    CHECK_EQ(tg_opts_check(demo_table, root, "alg.args", &again), TG_CONFIG);
    CHECK_STR(again.msg, wanted);
    tg_arena_fini(&a);
}
#define CHECK_MESSAGE(text, wanted) check_message(text, wanted, __LINE__)

TEST(defaults_and_values) {
    tg_arena a = {0};
    tg_error err = {0};
    demo d;
    REQUIRE_OK(read_text("model_name: gpt2", &d, &a, &err));
    CHECK_EQ(d.n_epochs, 10);
    CHECK(d.top_k == INT64_MIN);
    CHECK(isnan(d.target_kl));
    CHECK_NEAR(d.clip_range, 0.2, 0);
    CHECK(d.shuffle);
    CHECK_STR(d.side, "left");
    CHECK_STR(d.name, "5");
    CHECK(!d.extra);
    REQUIRE_OK(read_text("{model_name: gpt2, n_epochs: 3, top_k: 50, clip_range: 1, target_kl: "
                         "1e-2, shuffle: off, side: both, "
                         "name: ~, lambda: -4, extra: [1]}",
                         &d, &a, &err));
    CHECK_EQ(d.n_epochs, 3);
    CHECK_EQ(d.top_k, 50);
    CHECK_NEAR(d.clip_range, 1.0, 0);
    CHECK_NEAR(d.target_kl, 0.01, 0);
    CHECK(!d.shuffle);
    CHECK_STR(d.side, "both");
    CHECK(!d.name);
    CHECK_EQ(d.seed, -4);
    CHECK_EQ(d.extra->n_items, 1);
    tg_arena_fini(&a);
}

TEST(messages_name_file_line_key_and_fix) {
    CHECK_MESSAGE("model_name: m\nn_epoch: 5\n",
                  "t.yml:2: alg.args.n_epoch: unknown key, did you mean \"n_epochs\"?");
    CHECK_MESSAGE("model_name: m\nzzzz: 5\n",
                  "t.yml:2: alg.args.zzzz: unknown key, expected one of model_name, n_epochs, "
                  "top_k, clip_range, target_kl, "
                  "shuffle, side, name, lambda, extra");
    CHECK_MESSAGE("model_name: m\nn_epochs: many\n",
                  "t.yml:2: alg.args.n_epochs: expected a whole number from 1 to 1000, found many");
    CHECK_MESSAGE("model_name: m\nn_epochs: 0\n",
                  "t.yml:2: alg.args.n_epochs: expected a whole number from 1 to 1000, found 0");
    CHECK_MESSAGE("model_name: m\nn_epochs: 2.5\n",
                  "t.yml:2: alg.args.n_epochs: expected a whole number from 1 to 1000, found 2.5");
    CHECK_MESSAGE("model_name: m\nn_epochs:\n",
                  "t.yml:2: alg.args.n_epochs: expected a whole number from 1 to 1000, found null");
    CHECK_MESSAGE(
        "model_name: m\ntop_k: 0\n",
        "t.yml:2: alg.args.top_k: expected a whole number from 1 to 1e+18 or null, found 0");
    CHECK_MESSAGE(
        "model_name: m\nclip_range: '0.2'\n",
        "t.yml:2: alg.args.clip_range: expected a number from 0 to 1, found the text \"0.2\"");
    CHECK_MESSAGE("model_name: m\nclip_range: .nan\n",
                  "t.yml:2: alg.args.clip_range: expected a number from 0 to 1, found .nan");
    CHECK_MESSAGE("model_name: m\nshuffle: 1\n",
                  "t.yml:2: alg.args.shuffle: expected true or false, found 1");
    CHECK_MESSAGE("model_name: m\nshuffle: [true]\n",
                  "t.yml:2: alg.args.shuffle: expected true or false, found a list");
    CHECK_MESSAGE("model_name: m\nside: rihgt\n",
                  "t.yml:2: alg.args.side: expected one of left, right, both, found rihgt, did you "
                  "mean \"right\"?");
    CHECK_MESSAGE("model_name: m\nname: 12\n",
                  "t.yml:2: alg.args.name: expected a text, found 12; write \"12\" with quotes");
    CHECK_MESSAGE("model_name: {a: 1}\n",
                  "t.yml:1: alg.args.model_name: expected a text, found a section");
    CHECK_MESSAGE("n_epochs: 5\n",
                  "t.yml:1: alg.args.model_name: is required: expected a text. Which model.");
    CHECK_MESSAGE("model_name:\n",
                  "t.yml:1: alg.args.model_name: is required: expected a text. Which model.");
    CHECK_MESSAGE("[1, 2]\n",
                  "t.yml:1: alg.args: expected a section (key: value lines), found a list");
}

TEST(no_node_means_all_defaults) {
    static const tg_opt table[] = {TG_OPT_INT(demo, n_epochs, "10", 1, 1000, "x"), TG_OPT_END};
    tg_arena a = {0};
    tg_error err = {0};
    demo d = {0};
    CHECK_OK(tg_opts_read(table, &d, NULL, "x", &a, &err));
    CHECK_EQ(d.n_epochs, 10);
    CHECK_OK(tg_opts_check(table, NULL, "x", &err));
    CHECK_EQ(tg_opts_check(demo_table, NULL, NULL, &err), TG_CONFIG);
    CHECK_STR(err.msg, "model_name: is required: expected a text. Which model.");
    tg_arena_fini(&a);
}

TEST(dump_reloads_to_the_same_values) {
    tg_arena a = {0};
    tg_error err = {0};
    demo d;
    REQUIRE_OK(read_text("{model_name: 'yes', clip_range: 1, target_kl: 0.1, extra: {top_mask: "
                         "1.0, k: 3, t: '7', i: .inf}}",
                         &d, &a, &err));
    tg_buf first = {0}, second = {0};
    tg_opts_json(demo_table, &d, &first);
    CHECK_STR(first.data,
              "{\"model_name\": \"yes\", \"n_epochs\": 10, \"top_k\": null, \"clip_range\": 1.0, "
              "\"target_kl\": 0.1, "
              "\"shuffle\": true, \"side\": \"left\", \"name\": \"5\", \"lambda\": 0, "
              "\"extra\": {\"top_mask\": 1.0, \"k\": 3, \"t\": \"7\", \"i\": \".inf\"}}");
    REQUIRE_OK(read_text(first.data, &d, &a, &err));
    tg_opts_json(demo_table, &d, &second);
    CHECK_STR(first.data, second.data);
    tg_buf_fini(&first);
    tg_buf_fini(&second);
    tg_arena_fini(&a);
}

TEST(infinity_survives_a_dump) {
    static const tg_opt table[] = {TG_OPT_FLOAT(demo, clip_range, "-.inf", 0, 0, "x"), TG_OPT_END};
    tg_arena a = {0};
    tg_error err = {0};
    demo d = {0};
    REQUIRE_OK(tg_opts_read(table, &d, NULL, "", &a, &err));
    tg_buf out = {0};
    tg_opts_json(table, &d, &out);
    CHECK_STR(out.data, "{\"clip_range\": \"-.inf\"}");
    tg_node *root;
    REQUIRE_OK(tg_tree_parse(&a, "t", out.data, out.len, &root, &err));
    d.clip_range = 0;
    REQUIRE_OK(tg_opts_read(table, &d, root, "", &a, &err));
    CHECK(isinf(d.clip_range) && d.clip_range < 0);
    tg_buf_fini(&out);
    tg_arena_fini(&a);
}

TEST(descriptions) {
    tg_buf out = {0};
    tg_opts_describe(demo_table, &out);
    CHECK(strstr(out.data, "n_epochs") && strstr(out.data, "required") &&
          strstr(out.data, "(left|right|both)"));
    tg_buf_reset(&out);
    tg_opts_describe_json(demo_table, &out);
    CHECK(strstr(out.data, "{\"key\": \"clip_range\", \"type\": \"float\", \"default\": 0.2, "
                           "\"required\": false, \"help\": \"PPO's epsilon.\"}"));
    tg_arena a = {0};
    tg_error err = {0};
    tg_node *root;
    CHECK_OK(tg_tree_parse(&a, "t", out.data, out.len, &root, &err));
    CHECK_EQ(root->n_items, 10);
    tg_arena_fini(&a);
    tg_buf_fini(&out);
}

TEST(out_of_memory_is_an_error) {
    tg_status st = TG_NOMEM;
    for (int n = 0; n < 200 && st == TG_NOMEM; n++) {
        tg_arena a = {0};
        tg_error err = {0};
        demo d;
        tg_alloc_fail_after(n);
        st = read_text("{model_name: gpt2, extra: {a: [1, 2]}}", &d, &a, &err);
        tg_alloc_fail_after(-1);
        CHECK(st == TG_OK || st == TG_NOMEM);
        tg_arena_fini(&a);
    }
    CHECK_EQ(st, TG_OK);
}

TEST_MAIN
