/* A fleet as /status and /metrics show it: the same members and names for learners and brokers. */
#include "common/net/fleet_status.h"

#include "common/net/fleet_impl.h"

#include <inttypes.h>

static const char *state_of(const tg_fleet_worker *w) {
    return w->detached ? "cut off" : w->draining ? "draining" : w->scores ? "rewards" : "serving";
}

static void put_worker(const tg_fleet_worker *w, tg_buf *json) {
    const tg_heartbeat *beat = tg_session_last_beat(w->session);
    tg_buf_printf(json,
                  "{\"id\": \"%08" PRIx32 "\", \"state\": \"%s\", \"slots\": %" PRIu32
                  ", \"capacity\": %" PRIu32 ", \"steps\": %" PRIu64 ", \"in_flight\": %" PRIu32
                  ", \"oldest_ms\": %" PRIu64 ", \"loop_lag_us\": %" PRIu64
                  ", \"idle_ms\": %" PRIu64 "}",
                  (uint32_t)tg_session_id(w->session), state_of(w), w->load, w->capacity,
                  beat->steps, beat->in_flight, (uint64_t)beat->oldest_ms,
                  (uint64_t)beat->loop_lag_us, tg_session_idle_ms(w->session));
}

void tg_fleet_put_status(const tg_fleet *f, tg_buf *json) {
    tg_fleet_stats st;
    tg_fleet_get_stats(f, &st);
    tg_buf_printf(json,
                  ", \"slots\": %zu, \"capacity\": %" PRIu64 ", \"steps\": %" PRIu64
                  ", \"in_flight\": %zu, \"workers_lost\": %" PRIu64
                  ", \"episodes_rebuilt\": %" PRIu64 ", \"episodes_aborted\": %" PRIu64
                  ", \"workers\": [",
                  st.slots, st.capacity, st.steps, st.calls, st.workers_lost, st.episodes_rebuilt,
                  st.episodes_aborted);
    for (const tg_fleet_worker *w = f->workers; w; w = w->next) {
        put_worker(w, json);
        if (w->next) tg_buf_puts(json, ", ");
    }
    tg_buf_putc(json, ']');
}

/* ---- figures -------------------------------------------------------------------------------- */

void tg_fleet_figures_init(tg_fleet_figures *f, tg_stats *s) {
    const char *recoveries = "textgen_worker_recoveries_total",
               *what = "Episodes of lost workers, by what became of them.";
    f->workers = tg_stats_gauge(s, "textgen_workers", "Workers connected.", "kind", "env");
    f->reward_workers =
        tg_stats_gauge(s, "textgen_workers", "Workers connected.", "kind", "reward");
    f->deaths = tg_stats_counter(s, "textgen_worker_deaths_total", "Workers that were lost.",
                                 "cause", "lost");
    f->rebuilt = tg_stats_counter(s, recoveries, what, "result", "rebuilt");
    f->aborted = tg_stats_counter(s, recoveries, what, "result", "aborted");
    f->dropped = tg_stats_counter(s, "textgen_replies_dropped_total",
                                  "Late, doubled or unasked replies.", NULL, NULL);
    f->resent = tg_stats_counter(s, "textgen_requests_resent_total",
                                 "Sent again for want of an answer.", NULL, NULL);
    f->steps = tg_stats_counter(s, "textgen_fleet_steps_total", "Tokens that workers acknowledged.",
                                NULL, NULL);
    f->slots = tg_stats_gauge(s, "textgen_fleet_slots", "Slots on workers.", "state", "wanted");
    f->open = tg_stats_gauge(s, "textgen_fleet_slots", "Slots on workers.", "state", "open");
    f->calls = tg_stats_gauge(s, "textgen_fleet_calls", "Resets and steps under way.", NULL, NULL);
    f->sent = tg_stats_counter(s, "textgen_worker_messages_sent_total", "To workers.", NULL, NULL);
    f->received =
        tg_stats_counter(s, "textgen_worker_messages_received_total", "From workers.", NULL, NULL);
}

void tg_fleet_figures_set(const tg_fleet_figures *f, const tg_fleet_stats *st) {
    tg_stat_set(f->workers, st->workers);
    tg_stat_set(f->reward_workers, st->reward_workers);
    tg_stat_set(f->deaths, (double)st->workers_lost);
    tg_stat_set(f->rebuilt, (double)st->episodes_rebuilt);
    tg_stat_set(f->aborted, (double)st->episodes_aborted);
    tg_stat_set(f->dropped, (double)st->replies_dropped);
    tg_stat_set(f->resent, (double)st->resent);
    tg_stat_set(f->steps, (double)st->steps);
    tg_stat_set(f->slots, (double)st->slots);
    tg_stat_set(f->open, (double)st->slots_open);
    tg_stat_set(f->calls, (double)st->calls);
    tg_stat_set(f->sent, (double)st->messages_sent);
    tg_stat_set(f->received, (double)st->messages_received);
}
