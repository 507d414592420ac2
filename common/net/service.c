/* Signals and timers on one loop. The handles are made before anything can fail, so that fini may close them whatever happened. */
#include "common/net/service.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <signal.h>

enum { LAG_MS = 100, DRAIN_MS = 10000 };

tg_status tg_service_uv(int code, const char *what, tg_error *err) {
    return code == 0 ? TG_OK : tg_fail(err, TG_IO, "%s: %s", what, uv_strerror(code));
}

tg_status tg_service_init(tg_service *s, const tg_service_hooks *hooks, void *arg, int drain_ms,
                          tg_error *err) {
    tg_status st = tg_service_uv(uv_loop_init(&s->loop), "event loop", err);
    if (st != TG_OK) return st;
    s->hooks = *hooks;
    s->arg = arg;
    s->drain_ms = drain_ms > 0 ? drain_ms : DRAIN_MS;
    s->draining = s->stopped = false;
    s->lag_us = 0;
    uv_signal_init(&s->loop, &s->on_term);
    uv_signal_init(&s->loop, &s->on_int);
    uv_timer_init(&s->loop, &s->lag_timer);
    uv_timer_init(&s->loop, &s->drain_timer);
    s->on_term.data = s->on_int.data = s->lag_timer.data = s->drain_timer.data = s;
    return TG_OK;
}

void tg_service_stop(tg_service *s) {
    s->stopped = true;
    uv_stop(&s->loop);
}

void tg_service_call_ended(tg_service *s) {
    if (s->draining && !s->stopped && s->hooks.in_flight(s->arg) == 0) tg_service_stop(s);
}

static void on_drain_timeout(uv_timer_t *timer) {
    tg_service *s = timer->data;
    tg_log_warn(s->hooks.name, "%zu calls did not end within %d ms", s->hooks.in_flight(s->arg),
                s->drain_ms);
    tg_service_stop(s);
}

static void on_signal(uv_signal_t *signal, int number) {
    tg_service *s = signal->data;
    const uint64_t now = tg_clock_ms();
    if (s->draining) { /* asked twice: at once */
        if (now - s->asked_ms >= TG_ONE_STOP_MS) tg_service_stop(s);
        return;
    }
    s->asked_ms = now;
    tg_log_info(s->hooks.name, "%s: finishing %zu calls", number == SIGTERM ? "SIGTERM" : "SIGINT",
                s->hooks.in_flight(s->arg));
    s->draining = true;
    s->hooks.on_drain(s->arg, s->drain_ms);
    uv_timer_start(&s->drain_timer, on_drain_timeout, (uint64_t)s->drain_ms, 0);
    tg_service_call_ended(s);
}

static void on_lag(uv_timer_t *timer) {
    tg_service *s = timer->data;
    uint64_t now = tg_clock_ns();
    s->lag_us = now > s->lag_due_ns ? (now - s->lag_due_ns) / 1000 : 0;
    s->lag_due_ns = now + (uint64_t)LAG_MS * 1000000;
}

tg_status tg_service_watch(tg_service *s, tg_error *err) {
    tg_status st = tg_service_uv(uv_signal_start(&s->on_term, on_signal, SIGTERM), "SIGTERM", err);
    if (st == TG_OK)
        st = tg_service_uv(uv_signal_start(&s->on_int, on_signal, SIGINT), "SIGINT", err);
    s->lag_due_ns = tg_clock_ns() + (uint64_t)LAG_MS * 1000000;
    if (st == TG_OK)
        st = tg_service_uv(uv_timer_start(&s->lag_timer, on_lag, LAG_MS, LAG_MS), "timer", err);
    return st;
}

void tg_service_run(tg_service *s) {
    while (!s->stopped) uv_run(&s->loop, UV_RUN_DEFAULT);
}

void tg_service_fini(tg_service *s) {
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_int, NULL);
    uv_close((uv_handle_t *)&s->lag_timer, NULL);
    uv_close((uv_handle_t *)&s->drain_timer, NULL);
    while (uv_run(&s->loop, UV_RUN_DEFAULT)) continue; /* a uv_stop may be pending */
    uv_loop_close(&s->loop);
}
