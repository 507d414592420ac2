/* Opening and judging, once for the tests of each kind. */
#include "tests/support/external_case.h"

#include "common/base/log.h"
#include "env-server/reward/inner.h"
#include "tests/support/tg_test.h"

#include <stdarg.h>
#include <unistd.h>

const char *external_built(void) {
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    for (int i = 0; i < 3; i++) *strrchr(path, '/') = 0;
    return path;
}

tg_status external_open_yaml(tg_reward *r, const char *yaml, tg_error *err) {
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_parse(&arena, "test.yml", yaml, strlen(yaml), &root, err);
    if (st == TG_OK) st = tg_reward_open_section(r, root, "reward_fn", &(tg_open_context){0}, err);
    tg_arena_fini(&arena);
    return st;
}

tg_status external_open(tg_reward *r, tg_error *err, const char *fmt, ...) {
    char yaml[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(yaml, sizeof yaml, fmt, ap);
    va_end(ap);
    return external_open_yaml(r, yaml, err);
}

tg_status external_open_plugin(tg_reward *r, const char *library, const char *args, tg_error *err) {
    return external_open(r, err, "{id: plugin, args: {path: \"%s/plugin/%s.so\"%s}}",
                         external_built(), library, args);
}

tg_status external_open_process(tg_reward *r, const char *mode, const char *args, tg_error *err) {
    return external_open(
        r, err,
        "{id: process, args: {command: [\"%s/tests/reward-child\", \"%s\"], breaker_ms: 0%s}}",
        external_built(), mode, args);
}

tg_status external_open_http(tg_reward *r, const http_judge *j, const char *args, tg_error *err) {
    return external_open(r, err,
                         "{id: http, args: {url: \"http://127.0.0.1:%d/score\", breaker_ms: 0%s}}",
                         j->port, args);
}

tg_reward_input external_input(const tg_sample *sample, const char *text) {
    return (tg_reward_input){
        .sample = sample, .text = text, .text_len = strlen(text), .done = true};
}

const tg_sample external_plain = {.id = "", .prompt_text = "prompt", .meta_json = "{\"k\": 1}"};

void external_quiet(void) {
    tg_log_set_level(TG_LOG_ERROR);
}

void external_expect(const tg_reward *r, const char *what, tg_reward_status status,
                     const char *reason) {
    tg_reward_input in = external_input(&external_plain, "text");
    tg_reward_value v;
    tg_error err = {0};
    tg_status st = tg_reward_score(r, &in, 1, &v, &err);
    tg_check(st == TG_OK && v.status == status && isnan(v.value) && strstr(err.msg, reason),
             __FILE__, __LINE__, "%s: status %d, value %g, \"%s\"", what, (int)v.status, v.value,
             err.msg);
}

void external_expect_lengths(const tg_reward *r) {
    const char *texts[] = {"one", "", "seven 77", "\xC3\xA9"};
    tg_reward_input in[4];
    tg_reward_value v[4];
    tg_error err = {0};
    for (int i = 0; i < 4; i++) in[i] = external_input(&external_plain, texts[i]);
    CHECK_OK(tg_reward_score(r, in, 4, v, &err));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(v[i].status, TG_REWARD_OK);
        CHECK_NEAR(v[i].value, (double)strlen(texts[i]), 0);
    }
}
