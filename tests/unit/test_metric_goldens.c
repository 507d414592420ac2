/* Metrics and rewards against values of their reference implementations: every file of tests/golden/metrics, one JSON object a
 * line: {"metric" or "reward": id, "args": {…}, "compat": true, "items": [{"prediction", "references", "prompt", "meta"}],
 * "values": {key: {"corpus": x, "samples": [...] or null}} or [x, …]}. Written by tests/oracle/gen_*.py. */
#include "common/base/file.h"
#include "common/config/tree.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/reward.h"
#include "tests/support/tg_test.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>

static double number(const json_t *v) {
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static bool near(double a, double b) {
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

static tg_metric_item *read_items(const json_t *list, tg_arena *a) {
    size_t n = json_array_size(list);
    tg_metric_item *items = tg_arena_array(a, n, sizeof *items);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i), *refs = json_object_get(o, "references");
        tg_sample *s = tg_arena_alloc(a, sizeof *s);
        *s = (tg_sample){.id = "", .prompt_text = "", .meta_json = ""};
        const char *prompt = json_string_value(json_object_get(o, "prompt"));
        if (prompt) s->prompt_text = prompt;
        const json_t *meta = json_object_get(o, "meta");
        if (meta) {
            char *text = json_dumps(meta, JSON_COMPACT);
            s->meta_json = tg_arena_strdup(a, text);
            free(text);
        }
        const char **texts = tg_arena_array(a, json_array_size(refs) + 1, sizeof *texts);
        for (size_t k = 0; k < json_array_size(refs); k++)
            texts[k] = json_string_value(json_array_get(refs, k));
        s->references = texts, s->n_references = json_array_size(refs);
        const json_t *p = json_object_get(o, "prediction");
        items[i] = (tg_metric_item){s, json_string_value(p), json_string_length(p)};
    }
    return items;
}

static tg_status choose(const tg_registry *r, const char *id, const json_t *args, tg_arena *a,
                        tg_choice *out, tg_error *err) {
    json_t *section =
        json_pack("{s:s, s:o}", "id", id, "args", args ? json_deep_copy(args) : json_object());
    char *text = json_dumps(section, JSON_COMPACT);
    tg_node *node;
    tg_status st = tg_tree_parse(a, "golden", text, strlen(text), &node, err);
    if (st == TG_OK) st = tg_choice_read(r, node, "golden", a, out, err);
    if (st == TG_OK) st = tg_choice_require_built(out, err);
    free(text);
    json_decref(section);
    return st;
}

static void compare_metric(const char *where, const tg_metric_out *out, const json_t *values) {
    const char *key;
    const json_t *want;
    json_object_foreach((json_t *)values, key, want) {
        const tg_metric_value *v = NULL;
        for (size_t i = 0; i < out->n; i++)
            if (!strcmp(out->values[i].key, key)) v = &out->values[i];
        if (!tg_check(v != NULL, __FILE__, __LINE__, "%s: no value %s", where, key)) continue;
        double corpus = number(json_object_get(want, "corpus"));
        tg_check(near(v->has_corpus ? v->corpus : (double)NAN, corpus), __FILE__, __LINE__,
                 "%s: %s is %.17g (%s), not %.17g", where, key, v->corpus, v->error, corpus);
        const json_t *samples = json_object_get(want, "samples");
        if (!json_is_array(samples)) continue;
        tg_check(v->n_samples == json_array_size(samples), __FILE__, __LINE__, "%s: %s has %zu",
                 where, key, v->n_samples);
        for (size_t i = 0; i < v->n_samples && i < json_array_size(samples); i++)
            tg_check(near(v->samples[i], number(json_array_get(samples, i))), __FILE__, __LINE__,
                     "%s: %s of text %zu is %.17g, not %.17g", where, key, i, v->samples[i],
                     number(json_array_get(samples, i)));
    }
}

static void compare_rewards(const char *where, const tg_reward_value *out, const json_t *values) {
    for (size_t i = 0; i < json_array_size(values); i++)
        tg_check(near(out[i].value, number(json_array_get(values, i))), __FILE__, __LINE__,
                 "%s: reward of text %zu is %.17g, not %.17g", where, i, out[i].value,
                 number(json_array_get(values, i)));
}

static void check_case(const char *where, const json_t *c) {
    tg_arena a = {0};
    tg_error err = {0};
    tg_choice choice;
    const json_t *list = json_object_get(c, "items"), *values = json_object_get(c, "values"),
                 *args = json_object_get(c, "args");
    const char *metric = json_string_value(json_object_get(c, "metric")),
               *reward = json_string_value(json_object_get(c, "reward"));
    const tg_open_context ctx = {.compat = json_is_true(json_object_get(c, "compat"))};
    tg_metric_item *items = read_items(list, &a);
    size_t n = json_array_size(list);
    tg_status st = choose(metric ? tg_metric_registry() : tg_reward_registry(),
                          metric ? metric : reward, args, &a, &choice, &err);
    if (st == TG_OK && metric) {
        tg_metric m;
        tg_metric_out out = {.arena = &a};
        tg_metric_input in = {.items = items, .n = n, .split = TG_SPLIT_TEST};
        st = tg_metric_open(&m, (const tg_metric_ops *)choice.entry, choice.options, &ctx, &err);
        if (st == TG_OK) st = tg_metric_compute(&m, &in, &out, &err);
        if (st == TG_OK) compare_metric(where, &out, values);
        tg_metric_close(&m);
    } else if (st == TG_OK) {
        tg_reward r;
        tg_reward_input *in = tg_arena_array(&a, n, sizeof *in);
        tg_reward_value *out = tg_arena_array(&a, n, sizeof *out);
        for (size_t i = 0; i < n; i++)
            in[i] = (tg_reward_input){.sample = items[i].sample,
                                      .text = items[i].text,
                                      .text_len = items[i].text_len,
                                      .done = true};
        st = tg_reward_open(&r, (const tg_reward_ops *)choice.entry, choice.options, &ctx, &err);
        if (st == TG_OK) st = tg_reward_score(&r, in, n, out, &err);
        if (st == TG_OK) compare_rewards(where, out, values);
        tg_reward_close(&r);
    }
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s: %s", where, err.msg);
    tg_arena_fini(&a);
}

static void check_file(const char *name) {
    char path[300], where[400];
    snprintf(path, sizeof path, "golden/metrics/%s", name);
    tg_buf file = {0};
    tg_error err = {0};
    CHECK_OK(tg_file_read(tg_test_path(path), 1 << 27, &file, &err));
    size_t line = 0;
    for (size_t at = 0; at < file.len;) {
        const char *begin = file.data + at, *end = memchr(begin, '\n', file.len - at);
        size_t len = end ? (size_t)(end - begin) : file.len - at;
        at += len + 1;
        snprintf(where, sizeof where, "%s:%zu", name, ++line);
        json_t *c = json_loadb(begin, len, JSON_ALLOW_NUL, NULL);
        if (tg_check(c != NULL, __FILE__, __LINE__, "%s: not JSON", where)) check_case(where, c);
        json_decref(c);
    }
    CHECK(line > 0);
    tg_buf_fini(&file);
}

TEST(values_are_those_of_the_reference_implementations) {
    DIR *dir = opendir(tg_test_path("golden/metrics"));
    REQUIRE(dir);
    size_t files = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        if (n < 6 || strcmp(e->d_name + n - 6, ".jsonl") != 0) continue;
        check_file(e->d_name);
        files++;
    }
    closedir(dir);
    CHECK(files > 0);
}
TEST_MAIN
