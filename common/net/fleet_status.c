/* A fleet as /status and /metrics show it: the same members and names for learners and brokers. */
#include "common/net/fleet_status.h"

#include "common/base/clock.h"
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
                  ", \"episodes\": %" PRIu64 ", \"in_flight\": %zu, \"workers_lost\": %" PRIu64
                  ", \"episodes_rebuilt\": %" PRIu64 ", \"episodes_aborted\": %" PRIu64
                  ", \"workers\": [",
                  st.slots, st.capacity, st.steps, st.episodes, st.calls, st.workers_lost,
                  st.episodes_rebuilt, st.episodes_aborted);
    for (const tg_fleet_worker *w = f->workers; w; w = w->next) {
        put_worker(w, json);
        if (w->next) tg_buf_puts(json, ", ");
    }
    tg_buf_putc(json, ']');
}

/* ---- figures -------------------------------------------------------------------------------- */

static tg_stat *deaths(tg_stats *s, const char *cause) {
    return tg_stats_counter(s, "textgen_worker_deaths_total", "Workers that were lost.", "cause",
                            cause);
}

void tg_fleet_figures_init(tg_fleet_figures *f, tg_stats *s) {
    static const char *const states[TG_FLEET_STATES] = {"idle", "running", "done", "recovering"};
    const char *recoveries = "textgen_worker_recoveries_total",
               *what = "Episodes of lost workers, by what became of them.";
    f->workers = tg_stats_gauge(s, "textgen_workers", "Workers connected.", "kind", "env");
    f->reward_workers =
        tg_stats_gauge(s, "textgen_workers", "Workers connected.", "kind", "reward");
    f->deaths[TG_LOSS_DISCONNECTED] = deaths(s, "disconnected");
    f->deaths[TG_LOSS_SILENT] = deaths(s, "silent");
    f->deaths[TG_LOSS_NONE] = tg_stats_counter(s, "textgen_workers_left_total",
                                               "Workers that said Bye, as at a drain.", NULL, NULL);
    f->recovery = tg_stats_histogram(s, "textgen_recovery_duration_seconds",
                                     "From an episode's loss to its being back.", NULL, NULL);
    tg_answer_figures_init(&f->answers, s, "textgen_worker_requests_total",
                           "textgen_worker_request_duration_seconds");
    for (int i = 0; i < TG_FLEET_STATES; i++)
        f->states[i] = tg_stats_gauge(s, "textgen_env_slots", "Slots, by what their episode does.",
                                      "state", states[i]);
    f->rebuilt = tg_stats_counter(s, recoveries, what, "result", "rebuilt");
    f->aborted = tg_stats_counter(s, recoveries, what, "result", "aborted");
    f->dropped = tg_stats_counter(s, "textgen_replies_dropped_total",
                                  "Late, doubled or unasked replies.", NULL, NULL);
    f->resent = tg_stats_counter(s, "textgen_requests_resent_total",
                                 "Sent again for want of an answer.", NULL, NULL);
    f->steps = tg_stats_counter(s, "textgen_fleet_steps_total", "Tokens that workers acknowledged.",
                                NULL, NULL);
    f->episodes = tg_stats_counter(s, "textgen_fleet_episodes_total", "Episodes that ended there.",
                                   NULL, NULL);
    f->open =
        tg_stats_gauge(s, "textgen_fleet_slots", "Slots, by where they live.", "place", "worker");
    f->unplaced =
        tg_stats_gauge(s, "textgen_fleet_slots", "Slots, by where they live.", "place", "none");
    f->calls = tg_stats_gauge(s, "textgen_fleet_calls", "Resets and steps under way.", NULL, NULL);
    f->sent = tg_stats_counter(s, "textgen_worker_messages_sent_total", "To workers.", NULL, NULL);
    f->received =
        tg_stats_counter(s, "textgen_worker_messages_received_total", "From workers.", NULL, NULL);
}

static void set(const tg_fleet_figures *f, const tg_fleet_stats *st) {
    tg_stat_set(f->workers, st->workers);
    tg_stat_set(f->reward_workers, st->reward_workers);
    for (int i = 0; i < TG_LOSSES; i++) tg_stat_set(f->deaths[i], (double)st->deaths[i]);
    for (int i = 0; i < TG_FLEET_STATES; i++) tg_stat_set(f->states[i], (double)st->in_state[i]);
    tg_stat_set(f->rebuilt, (double)st->episodes_rebuilt);
    tg_stat_set(f->aborted, (double)st->episodes_aborted);
    tg_stat_set(f->dropped, (double)st->replies_dropped);
    tg_stat_set(f->resent, (double)st->resent);
    tg_stat_set(f->steps, (double)st->steps);
    tg_stat_set(f->episodes, (double)st->episodes);
    tg_stat_set(f->open, (double)st->slots_open);
    tg_stat_set(f->unplaced, (double)(st->slots - st->slots_open));
    tg_stat_set(f->calls, (double)st->calls);
}

void tg_fleet_figures_set(tg_fleet_figures *f, const tg_fleet *fleet) {
    tg_link_stats links = {0};
    tg_fleet_add_link_stats(fleet, &links);
    set(f, &fleet->stats);
    tg_stat_set(f->sent, (double)links.sent);
    tg_stat_set(f->received, (double)links.received);
    tg_answer_figures_set(&f->answers, &fleet->answers);
}

/* ---- what happens --------------------------------------------------------------------------- */

void tg_fleet_show(tg_fleet *f, tg_fleet_figures *figures) {
    f->figures = figures;
}

void tg_fleet_recount(tg_fleet *f, tg_fleet_slot *s) {
    tg_fleet_slot_state now = s->rebuild ? TG_FLEET_RECOVERING
                              : s->live  ? TG_FLEET_RUNNING
                              : s->ended ? TG_FLEET_DONE
                                         : TG_FLEET_IDLE;
    f->stats.in_state[s->counted]--;
    f->stats.in_state[now]++;
    s->counted = now;
}

void tg_fleet_rebuilt(tg_fleet *f, tg_fleet_slot *s) {
    f->stats.episodes_rebuilt++;
    tg_fleet_recount(f, s);
    if (f->figures)
        tg_stat_observe(f->figures->recovery, (double)(tg_clock_ns() - s->lost_ns) * 1e-9);
}

static tg_fleet_flight *flight(tg_fleet *f, uint64_t seq) {
    return &f->flights[seq % TG_FLEET_FLIGHTS];
}

void tg_fleet_sent(tg_fleet *f, tg_msg_type type, uint64_t seq) {
    *flight(f, seq) = (tg_fleet_flight){seq, tg_clock_ns(), type};
}

void tg_fleet_heard(tg_fleet *f, const tg_frame *head, const void *msg) {
    tg_fleet_flight *x = flight(f, head->seq);
    bool known = x->seq == head->seq;
    if (head->type != TG_MSG_ERROR)
        tg_answers_add(&f->answers, head->type, tg_answer_code(head->type, msg));
    else if (known)
        tg_answers_add(&f->answers, x->type, ((const tg_wire_error *)msg)->code);
    if (!known) return;
    x->seq = 0; /* a second copy is not counted */
    if (f->figures)
        tg_answer_figures_took(&f->figures->answers, x->type,
                               (double)(tg_clock_ns() - x->sent_ns) * 1e-9);
}
