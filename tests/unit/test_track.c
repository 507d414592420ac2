/* Trackers: the shapes of the run folder's files, ticks, the terminal chart and the picture. */
#include "common/base/buf.h"
#include "common/base/file.h"
#include "learner/track/chart.h"
#include "learner/track/series.h"
#include "learner/track/track.h"
#include "tests/support/tg_test.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static char *slurp(const char *dir, const char *name) {
    static char text[1 << 16];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    tg_buf b = {0};
    tg_error err;
    text[0] = 0;
    if (tg_file_read(path, sizeof text - 1, &b, &err) == TG_OK && b.len)
        memcpy(text, b.data, b.len + 1);
    tg_buf_fini(&b);
    return text;
}

static tg_track *open_track(tg_track_run *run) {
    static char dirs[8][512];
    static int next;
    char *dir = dirs[next++ % 8];
    snprintf(dir, sizeof dirs[0], "%s/run%d", tg_test_tmpdir(), next);
    tg_error err;
    CHECK_OK(tg_dir_create(dir, &err));
    *run = (tg_track_run){.run_dir = dir,
                          .title = "ppo <tiny> & co",
                          .unit = "iteration",
                          .curve_file = "rollout_info.jsonl",
                          .curve_key = "rollout_info/ep_rew",
                          .n_samples_shown = 2,
                          .quiet = true};
    tg_track *t = NULL;
    CHECK_OK(tg_track_open(&t, run, &err));
    return t;
}

TEST(numbers_become_lines_that_read_back) {
    tg_track_run run;
    tg_track *t = open_track(&run);
    REQUIRE(t != NULL);
    const char *names[] = {"rollout_info/ep_rew", "rollout_info/kl_coeff"};
    double values[] = {0.1, (double)NAN};
    tg_error err;
    tg_track_event e = {.kind = TG_TRACK_ROLLOUT, .numbers = {2, names, values}};
    CHECK_OK(tg_track_send(t, &e, &err));
    values[0] = 1.0 / 3;
    CHECK_OK(tg_track_send(t, &e, &err));
    tg_track_close(&t);
    CHECK_STR(slurp(run.run_dir, "rollout_info.jsonl"),
              "{\"rollout_info/ep_rew\": 0.1, \"rollout_info/kl_coeff\": null}\n"
              "{\"rollout_info/ep_rew\": 0.3333333333333333, \"rollout_info/kl_coeff\": null}\n");
}

TEST(evaluations_have_the_shapes_of_rl4lms) {
    tg_track_run run;
    tg_track *t = open_track(&run);
    REQUIRE(t != NULL);
    const char *refs[] = {"a \"b\"", "c"};
    double scores[] = {0.5, 0.25};
    tg_track_prediction p[] = {{"val_0", "say", "one\ntwo", refs, 2},
                               {"val_1", "say", "", NULL, 0}};
    tg_track_metric m[] = {{"synthetic/x", true, 0.375, scores, NULL},
                           {"lexical/y", false, 0, NULL, "why"}};
    tg_track_evaluation e = {3, "val", p, 2, m, 2, NULL};
    tg_track_event event = {.kind = TG_TRACK_EVALUATION, .evaluation = &e};
    tg_error err;
    CHECK_OK(tg_track_send(t, &event, &err));
    tg_track_close(&t);
    CHECK_STR(slurp(run.run_dir, "val_split_metrics.jsonl"),
              "{\"epoch\": 3, \"metrics\": {\"synthetic/x\": 0.375, \"lexical/y\": \"n/a\"}}\n");
    json_t *list = json_loads(slurp(run.run_dir, "epoch_3_val_split_predictions.json"), 0, NULL);
    CHECK_EQ(json_array_size(list), 2);
    const json_t *first = json_array_get(list, 0);
    CHECK_EQ(json_object_size(first), 7);
    CHECK_STR(json_string_value(json_object_get(first, "split_name")), "val");
    CHECK_STR(json_string_value(json_object_get(first, "sample_id")), "val_0");
    CHECK_STR(json_string_value(json_object_get(first, "prompt_text")), "say");
    CHECK_STR(json_string_value(json_object_get(first, "generated_text")), "one\ntwo");
    CHECK_STR(json_string_value(json_object_get(first, "ref_text")),
              "<START-1>a \"b\"<END-1><START-2>c<END-2>");
    CHECK_NEAR(json_number_value(json_object_get(first, "synthetic/x")), 0.5, 0);
    CHECK_STR(json_string_value(json_object_get(first, "lexical/y")), "n/a");
    CHECK_STR(json_string_value(json_object_get(json_array_get(list, 1), "ref_text")), "");
    json_decref(list);
}

TEST(a_fraction_of_an_epoch_names_its_file) {
    tg_track_run run;
    tg_track *t = open_track(&run);
    REQUIRE(t != NULL);
    tg_track_evaluation e = {.epoch = 0.5, .split = "test"};
    tg_track_event event = {.kind = TG_TRACK_EVALUATION, .evaluation = &e};
    tg_error err;
    CHECK_OK(tg_track_send(t, &event, &err));
    tg_track_close(&t);
    CHECK_STR(slurp(run.run_dir, "epoch_0.5_test_split_predictions.json"), "[]");
    CHECK_STR(slurp(run.run_dir, "test_split_metrics.jsonl"),
              "{\"epoch\": 0.5, \"metrics\": {}}\n");
}

TEST(ticks_are_round_and_cover_the_range) {
    const double ranges[][2] = {{0, 1},       {0.03, 0.87}, {-3, 12}, {1e-6, 9e-6},
                                {1e5, 2.5e6}, {5, 5},       {0, 0},   {-0.2, -0.1}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (int most = 2; most < 9; most++) {
            tg_ticks t = tg_ticks_for(ranges[i][0], ranges[i][1], most);
            CHECK(t.n >= 2 && (most < 3 || t.n <= most));
            if (most < 3) continue;
            CHECK(t.first <= ranges[i][0] + 1e-9 * fabs(t.step));
            CHECK(t.first + (t.n - 1) * t.step >= ranges[i][1] - 1e-9 * fabs(t.step));
        }
    }
    char text[32];
    tg_tick_text(text, sizeof text, 0.30000000000000004, 0.1);
    CHECK_STR(text, "0.3");
    tg_tick_text(text, sizeof text, 2.5, 2.5);
    CHECK_STR(text, "2.5");
    tg_tick_text(text, sizeof text, -1e-17, 0.2);
    CHECK_STR(text, "0.0");
}

TEST(series_skip_what_is_not_a_number) {
    char path[512];
    snprintf(path, sizeof path, "%s/s.jsonl", tg_test_tmpdir());
    const char *text =
        "{\"a\": 1, \"e\": 10}\n{\"a\": null}\n{\"b\": 2}\nnot json\n{\"a\": 5, \"e\": 40}\n";
    tg_error err;
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
    tg_series s = {0};
    CHECK_OK(tg_series_read(&s, path, NULL, "a", NULL, &err));
    CHECK_EQ(s.n, 2);
    CHECK_NEAR(s.x[1], 5, 0);
    CHECK_NEAR(s.y[1], 5, 0);
    tg_series_fini(&s);
    CHECK_OK(tg_series_read(&s, path, NULL, "a", "e", &err));
    CHECK_NEAR(s.x[1], 40, 0);
    tg_series_fini(&s);
    CHECK_OK(tg_series_read(&s, "/nowhere/at/all", NULL, "a", NULL, &err));
    CHECK_EQ(s.n, 0);
}

TEST(chart_goes_up_when_the_series_does) {
    double x[20], y[20];
    for (int i = 0; i < 20; i++) x[i] = i + 1, y[i] = 0.1 * i;
    tg_series s = {x, y, 20};
    tg_buf b = {0};
    tg_chart_draw(&b, &s, 1, "reward", "iteration", (tg_chart_size){.columns = 20, .rows = 5});
    REQUIRE(b.data != NULL);
    /* the first row holds dots only at its right end, the last only at its left */
    char *rows[8], *save = NULL;
    int n = 0;
    for (char *l = strtok_r(b.data, "\n", &save); l && n < 8; l = strtok_r(NULL, "\n", &save))
        rows[n++] = l;
    CHECK_EQ(n, 8); /* title, five rows, axis, labels */
    CHECK(strstr(rows[0], "reward") != NULL);
    CHECK(strstr(rows[1], "    ") && (unsigned char)rows[1][strlen(rows[1]) - 1] >= 0x80);
    CHECK(rows[5][strlen(rows[5]) - 1] == ' ');
    CHECK(strstr(rows[7], "iteration 20") != NULL);
    tg_buf_fini(&b);
    s.n = 1;
    tg_chart_draw(&b, &s, 1, "reward", "iteration", (tg_chart_size){.columns = 20, .rows = 5});
    CHECK(b.data == NULL);
}

TEST(the_picture_is_one_svg_with_escaped_text) {
    tg_track_run run;
    tg_track *t = open_track(&run);
    REQUIRE(t != NULL);
    const char *names[] = {"rollout_info/ep_rew", "rollout_info/kl_div_mean"};
    tg_error err;
    for (int i = 0; i < 5; i++) {
        double values[] = {i * 0.2, 0.01 * i};
        tg_track_event e = {.kind = TG_TRACK_ROLLOUT, .numbers = {2, names, values}};
        CHECK_OK(tg_track_send(t, &e, &err));
    }
    tg_track_event finish = {.kind = TG_TRACK_FINISH};
    CHECK_OK(tg_track_send(t, &finish, &err));
    tg_track_close(&t);
    const char *svg = slurp(run.run_dir, "curves.svg");
    CHECK(!strncmp(svg, "<svg ", 5) && strstr(svg, "</svg>\n"));
    CHECK(strstr(svg, "ppo &lt;tiny&gt; &amp; co") != NULL);
    int lines = 0;
    for (const char *p = svg; (p = strstr(p, "<polyline")); p++) lines++;
    CHECK_EQ(lines, 4); /* raw and mean of two panels */
}

TEST(registry_names_are_distinct) {
    const tg_tracker_ops *const *all = tg_tracker_list();
    for (int i = 0; all[i]; i++)
        for (int k = 0; k < i; k++) CHECK(strcmp(all[i]->name, all[k]->name) != 0);
}

TEST_MAIN
