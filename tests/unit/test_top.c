/* The table of `textgen top`: rows from /status pages, rates, what is missing or broken. */
#include "common/cli/top_rows.h"
#include "tests/support/tg_test.h"

static const char page_1[] =
    "{\"program\": \"textgen-broker\", \"ready\": true, \"state\": \"serving\", \"sessions\": 3, "
    "\"slots\": 64, "
    "\"capacity\": 128, \"steps\": 1000, \"episodes\": 10, \"in_flight\": 2, \"oldest_ms\": 1500, "
    "\"loop_lag_us\": 250, \"rss_bytes\": 5000000, \"workers\": [{\"id\": \"w1\", \"slots\": 32, "
    "\"steps\": 400, "
    "\"state\": \"serving\"}, 5, {\"id\": \"w2\", \"state\": \"dr\\u001b[31m\"}]}";
static const char page_2[] = "{\"program\": \"textgen-broker\", \"ready\": false, \"why\": "
                             "\"draining\", \"steps\": 251000, \"episodes\": "
                             "5, \"workers\": [{\"id\": \"w1\", \"steps\": 100400}]}";

TEST(rows_and_rates) {
    tg_top_rows a = {0}, b = {0};
    tg_buf out = {0};
    tg_error err = {0};
    REQUIRE_OK(tg_top_rows_add(&a, "h:1", page_1, strlen(page_1), &err));
    CHECK_EQ(a.n, 3);
    CHECK(a.rows[1].child && !strcmp(a.rows[1].name, "w1") && a.rows[1].steps == 400);
    CHECK(!strchr(a.rows[2].state, '\033')); /* nothing that a terminal would obey */
    REQUIRE_OK(tg_top_rows_add_down(&a, "h:2", "refused", &err));
    tg_top_rows_write(&a, NULL, false, &out);
    CHECK(strstr(out.data, "textgen-broker") && strstr(out.data, "1.5s") &&
          strstr(out.data, "  w1 "));
    CHECK(strstr(out.data, "refused\n") != NULL);
    REQUIRE_OK(tg_top_rows_add(&b, "h:1", page_2, strlen(page_2), &err));
    a.at_ns = 1000000000, b.at_ns = 3000000000;
    tg_buf_reset(&out);
    tg_top_rows_write(&b, &a, false, &out);
    CHECK(strstr(out.data, " 125.0k ") && strstr(out.data, " 50000 ")); /* per second */
    CHECK(strstr(out.data, "draining\n") != NULL);
    tg_top_rows_fini(&a), tg_top_rows_fini(&b);
    tg_buf_fini(&out);
}

TEST(what_is_no_status_page) {
    tg_top_rows t = {0};
    tg_error err = {0};
    CHECK_EQ(tg_top_rows_add(&t, "h:1", "<html>", 6, &err), TG_DATA);
    CHECK_EQ(tg_top_rows_add(&t, "h:1", "[1]", 3, &err), TG_DATA);
    CHECK_EQ(tg_top_rows_add(&t, "h:1", "", 0, &err), TG_DATA);
    CHECK_OK(tg_top_rows_add(&t, "h:1", "{}", 2, &err));
    CHECK_EQ(t.n, 1);
    CHECK(t.rows[0].steps < 0);
    tg_top_rows_fini(&t);
}

TEST_MAIN
