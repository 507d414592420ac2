/* The timer stands at the earliest deadline, or earlier: clearing one does not move it. */
#include "env-server/server/deadlines.h"

#include "common/base/clock.h"

static void arm(tg_deadlines *ds);

static void on_timer(uv_timer_t *timer) {
    tg_deadlines *ds = timer->data;
    uint64_t now = tg_clock_ms();
    for (tg_deadline *d = ds->first; d;) {
        if (d->due_ms > now) {
            d = d->next;
            continue;
        }
        tg_deadline_clear(ds, d);
        d->expire(d);
        d = ds->first; /* the list may have changed */
    }
    arm(ds);
}

static void arm(tg_deadlines *ds) {
    uint64_t now = tg_clock_ms(), due = UINT64_MAX;
    for (tg_deadline *d = ds->first; d; d = d->next)
        if (d->due_ms < due) due = d->due_ms;
    if (due == UINT64_MAX)
        uv_timer_stop(&ds->timer);
    else
        uv_timer_start(&ds->timer, on_timer, due > now ? due - now : 0, 0);
}

void tg_deadlines_init(tg_deadlines *ds, uv_loop_t *loop) {
    ds->first = NULL;
    uv_timer_init(loop, &ds->timer);
    ds->timer.data = ds;
}

void tg_deadlines_fini(tg_deadlines *ds) {
    uv_close((uv_handle_t *)&ds->timer, NULL);
}

void tg_deadline_set(tg_deadlines *ds, tg_deadline *d, uint32_t ms) {
    if (ms == 0) return;
    d->due_ms = tg_clock_ms() + ms;
    d->set = true;
    d->before = NULL;
    d->next = ds->first;
    if (d->next) d->next->before = d;
    ds->first = d;
    uint64_t left =
        uv_is_active((uv_handle_t *)&ds->timer) ? uv_timer_get_due_in(&ds->timer) : UINT64_MAX;
    if (ms < left) uv_timer_start(&ds->timer, on_timer, ms, 0);
}

void tg_deadline_clear(tg_deadlines *ds, tg_deadline *d) {
    if (!d->set) return;
    d->set = false;
    if (d->next) d->next->before = d->before;
    if (d->before)
        d->before->next = d->next;
    else
        ds->first = d->next;
}
