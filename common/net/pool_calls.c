/* What a pool's caller asks of its slots: opening them, resets and steps, and waiting for what has finished. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/net/fleet.h"
#include "common/net/pool_internal.h"
#include "proto/limits.h"

/* ---- slots ---------------------------------------------------------------------------------- */

static tg_status wait_open(tg_pool *p, tg_error *err) {
    uint64_t deadline = tg_clock_ms() + (uint64_t)p->opts.call_timeout_ms;
    for (;;) {
        tg_fleet_stats st = tg_pool_stats_of(p);
        if (p->slots_status != TG_OK) {
            *err = p->slots_error;
            return p->slots_status;
        }
        if (p->n_slots == p->want_slots && st.slots_open == p->n_slots) return TG_OK;
        if (tg_pool_wait_until(p, deadline)) continue;
        return tg_fail(err, TG_UNAVAILABLE,
                       "%zu of %u slots are open: %d workers have room for %llu; start more "
                       "workers, or give them more slots",
                       st.slots_open, p->want_slots, st.workers, (unsigned long long)st.capacity);
    }
}

/* Nodes for the events of so many slots, which have at most one call each. */
static tg_status set_nodes_aside(tg_pool *p, size_t n, tg_error *err) {
    for (; p->n_nodes < n; p->n_nodes++) {
        tg_pool_node *node = tg_alloc(sizeof *node);
        if (!node) return tg_fail_nomem(err, sizeof *node);
        node->next = p->spare;
        p->spare = node;
    }
    return TG_OK;
}

tg_status tg_pool_open_slots(tg_pool *p, int n, tg_error *err) {
    if (n <= 0 || n > TG_LIMIT_SLOTS)
        return tg_fail(err, TG_USAGE, "%d slots: 1 to %d are possible", n, TG_LIMIT_SLOTS);
    tg_pool_lock(p);
    size_t calls = tg_pool_stats_of(p).calls;
    /* An event not yet taken and one being shown may exist beside the next call. */
    tg_status st =
        calls ? tg_fail(err, TG_USAGE, "slots cannot change while %zu calls are under way", calls)
              : set_nodes_aside(p, 2 * (size_t)n + p->n_events + 1, err);
    if (st == TG_OK) {
        p->want_slots = (uint32_t)n;
        p->slots_status = TG_OK;
        uv_async_send(&p->wake);
        st = wait_open(p, err);
    }
    tg_pool_unlock(p);
    return st;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Beyond this many events nobody has taken, the caller asks without listening. */
static tg_status check_call(const tg_pool *p, uint32_t slot, size_t n_more, tg_error *err) {
    if (slot >= p->n_slots)
        return tg_fail(err, TG_USAGE, "slot %u is not open (%u are)", slot, p->n_slots);
    if (tg_fleet_slot_is_busy(p->fleet, p->ids[slot]))
        return tg_fail(err, TG_USAGE, "slot %u has a call under way", slot);
    if (tg_pool_stats_of(p).calls + p->n_events + n_more + 1 > p->n_nodes)
        return tg_fail(err, TG_USAGE, "take the %zu finished calls first", p->n_events);
    return TG_OK;
}

tg_status tg_pool_reset(tg_pool *p, const tg_reset_item *items, size_t n, tg_error *err) {
    tg_status st = TG_OK;
    tg_pool_lock(p);
    for (size_t i = 0; i < n && st == TG_OK; i++) st = check_call(p, items[i].slot, n, err);
    uint64_t deadline = tg_clock_ms() + (uint64_t)p->opts.call_timeout_ms;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        tg_reset_item item = items[i];
        item.slot = p->ids[item.slot];
        st = tg_fleet_reset(p->fleet, &item, false, deadline, err);
    }
    tg_pool_unlock(p);
    uv_async_send(&p->wake);
    return st;
}

tg_status tg_pool_step(tg_pool *p, const tg_step_item *items, size_t n, tg_error *err) {
    tg_status st = TG_OK;
    tg_pool_lock(p);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        st = check_call(p, items[i].slot, n, err);
        size_t len = items[i].n_tokens;
        if (st == TG_OK && (len == 0 || len > TG_LIMIT_TOKENS))
            st = tg_fail(err, TG_USAGE, "slot %u: a step has 1 to %d tokens, not %zu",
                         items[i].slot, TG_LIMIT_TOKENS, len);
    }
    uint64_t deadline = tg_clock_ms() + (uint64_t)p->opts.call_timeout_ms;
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        tg_step_item item = items[i];
        item.slot = p->ids[item.slot];
        st = tg_fleet_step(p->fleet, &item, false, deadline, err);
    }
    tg_pool_unlock(p);
    uv_async_send(&p->wake);
    return st;
}

static void give_back(tg_pool *p) {
    if (!p->shown) return;
    p->shown->next = p->spare;
    p->spare = p->shown;
    p->shown = NULL;
}

static void take_event(tg_pool *p, tg_pool_event *event) {
    tg_pool_node *n = p->events;
    p->events = n->next;
    if (!p->events) p->last_event = NULL;
    p->n_events--;
    n->next = NULL;
    p->shown = n;
    *event = n->event;
}

tg_status tg_pool_wait(tg_pool *p, tg_pool_event *event, int timeout_ms, tg_error *err) {
    uint64_t deadline = tg_clock_ms() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0);
    tg_status st = TG_OK;
    tg_pool_lock(p);
    give_back(p);
    while (!p->events && st == TG_OK) {
        size_t calls = tg_pool_stats_of(p).calls;
        if (calls == 0) {
            st = tg_fail(err, TG_TIMEOUT, "no reset or step is under way");
        } else if (!tg_pool_wait_until(p, deadline)) {
            st = tg_fail(err, TG_TIMEOUT, "nothing finished within %d ms (%zu calls under way)",
                         timeout_ms, calls);
        }
    }
    if (st == TG_OK) take_event(p, event);
    tg_pool_unlock(p);
    return st;
}
