/* Signals and a lost parent become a flag; a second signal, or a parent gone for too long, calls die. */
#include "common/base/clock.h"
#include "learner/train/halt.h"
#include "tests/support/tg_test.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int died;

static void note_death(int code) {
    atomic_store(&died, code);
}

static bool wait_until(bool (*is)(const tg_halt *), const tg_halt *h) {
    double end = tg_clock_seconds() + 20;
    while (!is(h) && tg_clock_seconds() < end) usleep(1000);
    return is(h);
}

static bool requested(const tg_halt *h) {
    return tg_halt_requested(h);
}
static bool dead(const tg_halt *h) {
    (void)h;
    return atomic_load(&died) != 0;
}

TEST(a_signal_asks_and_a_second_one_kills) {
    tg_halt *h = NULL;
    tg_error err;
    atomic_store(&died, 0);
    REQUIRE_OK(tg_halt_create(&h, -1, note_death, &err));
    CHECK(!tg_halt_requested(h));
    CHECK_STR(tg_halt_reason(h), "");
    raise(SIGTERM);
    CHECK(wait_until(requested, h));
    CHECK_STR(tg_halt_reason(h), "SIGTERM");
    CHECK_EQ(atomic_load(&died), 0);
    usleep(600000); /* signals that come together are one stop */
    raise(SIGINT);
    CHECK(wait_until(dead, h));
    CHECK_EQ(atomic_load(&died), 130);
    tg_halt_destroy(&h);
    CHECK(h == NULL);
}

TEST(signals_that_come_together_are_one_stop) {
    tg_halt *h = NULL;
    tg_error err;
    atomic_store(&died, 0);
    REQUIRE_OK(tg_halt_create(&h, -1, note_death, &err));
    raise(SIGTERM);
    CHECK(wait_until(requested, h));
    raise(SIGTERM);
    usleep(100000);
    CHECK_EQ(atomic_load(&died), 0);
    tg_halt_destroy(&h);
}

TEST(a_parent_that_is_gone_asks_then_kills) {
    tg_halt *h = NULL;
    tg_error err;
    int ends[2];
    atomic_store(&died, 0);
    REQUIRE(pipe(ends) == 0);
    REQUIRE_OK(tg_halt_create(&h, ends[0], note_death, &err));
    usleep(20000);
    CHECK(!tg_halt_requested(h));
    close(ends[1]);
    CHECK(wait_until(requested, h));
    CHECK_STR(tg_halt_reason(h), "the parent process is gone");
    CHECK(wait_until(dead, h));
    tg_halt_destroy(&h);
    close(ends[0]);
}

TEST(afterwards_signals_do_what_they_did_before) {
    tg_halt *h = NULL;
    tg_error err;
    struct sigaction before, after;
    sigaction(SIGINT, NULL, &before);
    REQUIRE_OK(tg_halt_create(&h, -1, note_death, &err));
    tg_halt_destroy(&h);
    sigaction(SIGINT, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler);
    CHECK(!tg_halt_requested(NULL));
}

TEST_MAIN
