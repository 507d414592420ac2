/* Command lines: flags of every type, overrides, positionals, messages, --help. */
#include "common/base/alloc.h"
#include "common/config/args.h"
#include "tests/support/tg_test.h"

#include <stdint.h>

typedef struct values {
    int64_t n;
    double rate;
    const char *dir;
    bool jsonl;
} values;

static tg_status parse(values *v, int argc, const char *const *argv, tg_args *args, tg_error *err) {
    const tg_flag flags[] = {{"n", TG_FLAG_INT, &v->n, "N", "How many."},
                             {"rate", TG_FLAG_FLOAT, &v->rate, "X", "How fast."},
                             {"run-dir", TG_FLAG_STR, &v->dir, "DIR", "Where."},
                             {"jsonl", TG_FLAG_SWITCH, &v->jsonl, NULL, "One JSON a line."},
                             {0}};
    const tg_args_spec spec = {.name = "demo",
                               .usage = "CONFIG [options]",
                               .summary = "A demo.",
                               .flags = flags,
                               .examples = "  demo c.yml --n 3\n",
                               .min_positional = 1,
                               .max_positional = 2};
    return tg_args_parse(&spec, argc, (char **)(uintptr_t)argv, args, err);
}
#define ARGV(...)                                                                                  \
    (int)(sizeof((const char *[]){"demo", __VA_ARGS__}) / sizeof(char *)), (const char *[]) {      \
        "demo", __VA_ARGS__                                                                        \
    }

TEST(all_forms) {
    values v = {.n = 1, .dir = "here"};
    tg_args args;
    tg_error err = {0};
    REQUIRE_OK(parse(&v,
                     ARGV("c.yml", "--n", "-3", "alg.args.n_epochs=2", "--rate=1e-3", "--run_dir",
                          "x=y", "--jsonl", "seed=1", "--", "--odd"),
                     &args, &err));
    CHECK_EQ(v.n, -3);
    CHECK_NEAR(v.rate, 1e-3, 0);
    CHECK_STR(v.dir, "x=y");
    CHECK(v.jsonl);
    CHECK_EQ(args.n_positional, 2);
    CHECK_STR(args.positional[0], "c.yml");
    CHECK_STR(args.positional[1], "--odd");
    CHECK_EQ(args.n_overrides, 2);
    CHECK_STR(args.overrides[0], "alg.args.n_epochs=2");
    CHECK_STR(args.overrides[1], "seed=1");
    tg_args_fini(&args);
    REQUIRE_OK(parse(&v, ARGV("./a=b.yml", "-", "--jsonl=false"), &args, &err));
    CHECK_EQ(args.n_positional, 2);
    CHECK(!v.jsonl);
    tg_args_fini(&args);
}

TEST(defaults_stay) {
    values v = {.n = 7, .dir = "here", .rate = 0.5};
    tg_args args;
    tg_error err = {0};
    REQUIRE_OK(parse(&v, ARGV("c"), &args, &err));
    CHECK_EQ(v.n, 7);
    CHECK_STR(v.dir, "here");
    CHECK(!args.help);
    tg_args_fini(&args);
}

TEST(mistakes_have_one_clear_line) {
    static const struct {
        const char *args[4], *message;
    } cases[] = {
        {{"c", "--jsnl"}, "unknown option --jsnl, did you mean --jsonl?"},
        {{"c", "--rundir", "x"}, "unknown option --rundir, did you mean --run-dir?"},
        {{"c", "--zzzzzzz"}, "unknown option --zzzzzzz; demo --help lists the options"},
        {{"c", "-x"}, "unknown option -x; demo --help lists the options"},
        {{"c", "--n", "many"}, "--n: expected a whole number, found \"many\""},
        {{"c", "--n=99999999999999999999"},
         "--n: expected a whole number, found \"99999999999999999999\""},
        {{"c", "--rate", "fast"}, "--rate: expected a number, found \"fast\""},
        {{"c", "--rate", "nan"}, "--rate: expected a number, found \"nan\""},
        {{"c", "--n"}, "--n needs a value: --n N"},
        {{"c", "--run-dir", "--n", "3"}, "--run-dir needs a value: --run-dir DIR"},
        {{"c", "--jsonl=maybe"}, "--jsonl: expected true or false, found \"maybe\""},
        {{"--n", "3"}, "an argument is missing; usage: demo CONFIG [options]"},
        {{"a", "b", "c"}, "unexpected argument \"c\"; usage: demo CONFIG [options]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *argv[5] = {"demo"};
        int argc = 1;
        while (argc < 5 && cases[i].args[argc - 1]) {
            argv[argc] = cases[i].args[argc - 1];
            argc++;
        }
        values v = {0};
        tg_args args;
        tg_error err = {0};
        CHECK_EQ(parse(&v, argc, argv, &args, &err), TG_USAGE);
        CHECK_STR(err.msg, cases[i].message);
        CHECK(!args.positional);
    }
}

TEST(help_ends_with_examples) {
    const tg_flag flags[] = {{"n", TG_FLAG_INT, NULL, "N", "How many."}, {0}};
    const tg_args_spec spec = {.name = "demo",
                               .usage = "X",
                               .summary = "A demo.",
                               .flags = flags,
                               .examples = "  demo c.yml\n"};
    tg_buf out = {0};
    tg_args_help(&spec, &out);
    CHECK(strstr(out.data, "usage: demo X"));
    CHECK(strstr(out.data, "--n N"));
    CHECK_STR(out.data + out.len - strlen("examples:\n  demo c.yml\n"),
              "examples:\n  demo c.yml\n");
    tg_buf_fini(&out);
}

TEST(out_of_memory_is_an_error) {
    for (int n = 0; n < 2; n++) {
        values v = {0};
        tg_args args;
        tg_error err = {0};
        tg_alloc_fail_after(n);
        CHECK_EQ(parse(&v, ARGV("c"), &args, &err), TG_NOMEM);
        tg_alloc_fail_after(-1);
    }
}

TEST_MAIN
