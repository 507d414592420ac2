/* The life of a process that serves: a drain that ends with the last call, one that runs out of time, a second signal. */
#include "common/base/clock.h"
#include "common/net/service.h"
#include "tests/support/tg_test.h"

#include <signal.h>

typedef struct owner {
    tg_service service;
    uv_timer_t timer;
    size_t calls;
    int drains, in_ms;
} owner;

static size_t in_flight(void *arg) {
    return ((owner *)arg)->calls;
}

static void on_drain(void *arg, int in_ms) {
    owner *o = arg;
    o->drains++;
    o->in_ms = in_ms;
}

static void raise_term(uv_timer_t *timer) {
    (void)timer;
    raise(SIGTERM);
}

static void end_call(uv_timer_t *timer) {
    owner *o = timer->data;
    if (!o->service.draining) {
        raise(SIGINT);
        return;
    }
    o->calls--;
    tg_service_call_ended(&o->service);
}

/* Runs to the end with a timer that fires every 5 ms. */
static void serve(owner *o, size_t calls, int drain_ms, uv_timer_cb every) {
    static const tg_service_hooks hooks = {"test", in_flight, on_drain};
    tg_error err;
    *o = (owner){.calls = calls};
    REQUIRE_OK(tg_service_init(&o->service, &hooks, o, drain_ms, &err));
    uv_timer_init(&o->service.loop, &o->timer);
    o->timer.data = o;
    REQUIRE_OK(tg_service_watch(&o->service, &err));
    uv_timer_start(&o->timer, every, 5, every == end_call ? 5 : 0);
    tg_service_run(&o->service);
    uv_close((uv_handle_t *)&o->timer, NULL);
    tg_service_fini(&o->service);
    CHECK(o->service.draining && o->service.stopped);
    CHECK_EQ(o->drains, 1);
}

TEST(the_last_call_ends_it) {
    static owner o;
    serve(&o, 3, 60000, end_call);
    CHECK_EQ(o.calls, 0);
    CHECK_EQ(o.in_ms, 60000);
}

TEST(without_calls_it_ends_at_once) {
    static owner o;
    serve(&o, 0, 0, raise_term);
    CHECK_EQ(o.in_ms, 10000);
}

TEST(a_call_that_never_ends_is_given_up) {
    static owner o;
    uint64_t start = tg_clock_ms();
    serve(&o, 1, 50, raise_term);
    CHECK(tg_clock_ms() - start >= 50);
    CHECK_EQ(o.calls, 1);
}

static void raise_twice(uv_timer_t *timer) {
    raise(((owner *)timer->data)->service.draining ? SIGINT : SIGTERM);
    uv_timer_start(timer, raise_twice, 5, 0);
}

TEST(asked_twice_it_does_not_wait) {
    static owner o;
    serve(&o, 1, 60000, raise_twice);
    CHECK_EQ(o.calls, 1);
}

/* Twice at once, and the call ends a little later. */
static void raise_together(uv_timer_t *timer) {
    owner *o = timer->data;
    if (!o->service.draining) {
        raise(SIGTERM);
        uv_timer_start(timer, raise_together, 5, 0);
    } else if (o->in_ms) { /* set when the drain began: not asked again yet */
        o->in_ms = 0;
        raise(SIGTERM);
        uv_timer_start(timer, raise_together, 50, 0);
    } else {
        o->calls--;
        tg_service_call_ended(&o->service);
    }
}

TEST(signals_that_come_together_are_one_stop) {
    static owner o;
    serve(&o, 1, 60000, raise_together);
    CHECK_EQ(o.calls, 0);
}

TEST_MAIN
