/* Reports: bands over seeds, groups of runs, their labels, the page. */
#include "common/base/file.h"
#include "learner/report/page.h"
#include "learner/report/summary.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>

TEST(student_t_is_that_of_the_tables) {
    CHECK_NEAR(tg_student_t(1), 12.7062047, 1e-6);
    CHECK_NEAR(tg_student_t(9), 2.2621572, 1e-6);
    CHECK_NEAR(tg_student_t(31), 2.0395134, 2e-6); /* scipy.stats.t.ppf(0.975, 31) */
    CHECK_NEAR(tg_student_t(1000), 1.9623391, 1e-6);
}

TEST(band_is_mean_and_confidence_over_the_runs_that_have_a_point) {
    double x[] = {1, 2, 3}, a[] = {1, 4, 7}, b[] = {3, 8, 0}, c[] = {2, 6, 0};
    tg_series s[] = {{x, a, 3}, {x, b, 2}, {x, c, 2}};
    const tg_series *all[] = {&s[0], &s[1], &s[2]};
    tg_band band;
    tg_error err;
    REQUIRE(tg_band_make(&band, all, 3, &err) == TG_OK);
    CHECK_EQ(band.n, 3);
    CHECK_EQ(band.n_runs, 3);
    CHECK_NEAR(band.mean[0], 2, 1e-15);
    CHECK_NEAR(band.hi[0] - 2, 4.302653 / 1.7320508075688772, 1e-6); /* s = 1 */
    CHECK_NEAR(band.lo[1], 6 - 4.302653 * 2 / 1.7320508075688772, 1e-6);
    CHECK_NEAR(band.mean[2], 7, 0); /* one run is left: no band */
    CHECK_NEAR(band.hi[2], 7, 0);
    tg_band_fini(&band);
    REQUIRE(tg_band_make(&band, all, 0, &err) == TG_OK);
    CHECK_EQ(band.n, 0);
}

/* A run folder with rewards 0.1 seed, 0.2 seed … */
static const char *make_run(const char *name, int seed, const char *algorithm, double rate) {
    static char dirs[8][512];
    static int used;
    char *dir = dirs[used++ % 8], text[2048], path[600];
    tg_error err;
    snprintf(dir, 512, "%s/%s", tg_test_tmpdir(), name);
    CHECK_OK(tg_dir_create(dir, &err));
    snprintf(text, sizeof text,
             "{\"alg\": {\"id\": \"%s\", \"args\": {\"learning_rate\": %g}, \"policy\": {\"args\": "
             "{\"model_name\": \"m<1>\"}}}, \"seed\": %d}",
             algorithm, rate, seed);
    snprintf(path, sizeof path, "%s/config.json", dir);
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
    size_t n = 0;
    for (int i = 1; i <= 4; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"rollout_info/ep_rew\": %g, \"rollout_info/kl_div_mean\": 0.5}\n",
                              0.1 * seed * i);
    snprintf(path, sizeof path, "%s/rollout_info.jsonl", dir);
    CHECK_OK(tg_file_write_atomic(path, text, n, &err));
    n = (size_t)snprintf(text, sizeof text, "{\"%s/value_loss\": 1}\n{\"%s/value_loss\": 0.5}\n",
                         algorithm, algorithm);
    snprintf(path, sizeof path, "%s/training_info.jsonl", dir);
    CHECK_OK(tg_file_write_atomic(path, text, n, &err));
    return dir;
}

TEST(runs_that_differ_in_the_seed_are_one_group) {
    const char *dirs[] = {make_run("a1", 1, "ppo", 1e-3), make_run("a2", 2, "ppo", 1e-3),
                          make_run("b1", 1, "nlpo", 1e-5)};
    tg_report r;
    tg_error err;
    REQUIRE(tg_report_open(&r, dirs, 3, false, &err) == TG_OK);
    CHECK_EQ(r.n_groups, 2);
    CHECK_EQ(r.groups[0].n_runs, 2);
    CHECK_STR(r.groups[0].label, "ppo, learning_rate 0.001");
    CHECK_STR(r.groups[1].label, "nlpo, learning_rate 1e-5");
    CHECK_EQ(r.n_titles, 3); /* both algorithms' value loss is one quantity */
    tg_report_summary s;
    REQUIRE(tg_report_summary_make(&s, &r, &err) == TG_OK);
    CHECK_NEAR(s.at[0].first, 0.15, 1e-12);
    CHECK_NEAR(s.at[0].last, 0.375, 1e-12);
    CHECK_NEAR(s.at[0].kl, 0.5, 1e-12);
    CHECK(s.at[0].half > 0 && s.at[1].half != s.at[1].half);
    tg_report_summary_fini(&s);
    tg_report_close(&r);
    REQUIRE(tg_report_open(&r, dirs, 3, true, &err) == TG_OK);
    CHECK_EQ(r.n_groups, 3);
    tg_report_close(&r);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++) n++;
    return n;
}

TEST(page_has_curves_and_bands_and_no_outside_link) {
    const char *dirs[] = {make_run("c1", 1, "ppo", 1e-3), make_run("c2", 2, "ppo", 1e-3)};
    tg_report r;
    tg_error err;
    REQUIRE(tg_report_open(&r, dirs, 2, false, &err) == TG_OK);
    tg_buf page = {0};
    REQUIRE(tg_report_page(&r, &page, &err) == TG_OK);
    CHECK_EQ(count(page.data, "<polyline"), 3);
    CHECK_EQ(count(page.data, "<polygon"), 3);
    CHECK(strstr(page.data, "ppo m&lt;1&gt;") != NULL);
    CHECK_EQ(count(page.data, "http"), 0);
    tg_buf_fini(&page);
    tg_report_close(&r);
}

TEST(a_folder_without_a_run_is_refused_by_name) {
    tg_report r;
    tg_error err;
    const char *dirs[] = {tg_test_tmpdir()}, *nowhere[] = {"/nowhere/at/all"};
    CHECK_EQ(tg_report_open(&r, dirs, 1, false, &err), TG_DATA);
    CHECK(strstr(err.msg, "holds no run") != NULL);
    tg_report_close(&r);
    CHECK_EQ(tg_report_open(&r, nowhere, 1, false, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "/nowhere/at/all") != NULL);
    tg_report_close(&r);
}

TEST_MAIN
