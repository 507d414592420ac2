/* A process that serves until it is told to end: its loop, SIGTERM and SIGINT, the drain, and how late the loop is.
 *
 *     const tg_service_hooks hooks = {.name = "env", .in_flight = in_flight, .on_drain = on_drain};
 *     tg_service_init(&s->service, &hooks, s, drain_ms, err);      // then open links and ports on s->service.loop
 *     tg_service_watch(&s->service, err);
 *     tg_service_run(&s->service);                                 // … until it is drained or stopped
 *     tg_service_fini(&s->service);                                // after everything else on the loop is being closed
 *
 * At the first signal the drain begins: calls under way may end, and the owner, who says so by tg_service_call_ended, takes no new
 * ones. The loop ends with the last of them, after drain_ms, or at a second signal that is a stop of its own (TG_ONE_STOP_MS). */
#ifndef TG_NET_SERVICE_H
#define TG_NET_SERVICE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

typedef struct tg_service_hooks {
    const char *name;                       /* in its lines of the log */
    size_t (*in_flight)(void *arg);         /* calls that have not ended */
    void (*on_drain)(void *arg, int in_ms); /* the drain begins and will have ended then */
} tg_service_hooks;

/* Owned by who serves; must not move between init and fini. */
typedef struct tg_service {
    uv_loop_t loop;
    uint64_t lag_us; /* how late the loop's last tick was */
    bool draining, stopped;

    uv_signal_t on_term, on_int;
    uv_timer_t lag_timer, drain_timer;
    uint64_t lag_due_ns, asked_ms; /* asked_ms: when the drain began */
    int drain_ms;
    tg_service_hooks hooks;
    void *arg;
} tg_service;

/* drain_ms <= 0: 10 s. After an error there is nothing to fini. */
tg_status tg_service_init(tg_service *s, const tg_service_hooks *hooks, void *arg, int drain_ms,
                          tg_error *err);
/* Signals are taken from here on. */
tg_status tg_service_watch(tg_service *s, tg_error *err);
void tg_service_run(tg_service *s);
void tg_service_stop(tg_service *s);       /* at once */
void tg_service_call_ended(tg_service *s); /* ends the loop when that was the last one of a drain */
/* Waits for all handles of the loop to be closed. */
void tg_service_fini(tg_service *s);

/* libuv's code as a status; `what` was tried. */
tg_status tg_service_uv(int code, const char *what, tg_error *err);

#endif
