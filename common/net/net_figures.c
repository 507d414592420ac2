/* Counters that links and nets keep themselves, copied when somebody looks. */
#include "common/net/net_figures.h"

void tg_net_figures_init(tg_net_figures *f, tg_stats *s) {
    const char *errors = "textgen_protocol_errors_total",
               *what = "Frames and handshakes that failed.";
    f->received =
        tg_stats_counter(s, "textgen_messages_received_total", "Whole messages.", NULL, NULL);
    f->sent = tg_stats_counter(s, "textgen_messages_sent_total", "Whole messages.", NULL, NULL);
    f->received_bytes =
        tg_stats_counter(s, "textgen_bytes_received_total", "Of messages.", NULL, NULL);
    f->sent_bytes = tg_stats_counter(s, "textgen_bytes_sent_total", "Of messages.", NULL, NULL);
    f->bad_frames = tg_stats_counter(s, errors, what, "kind", "frame");
    f->bad_handshakes = tg_stats_counter(s, errors, what, "kind", "handshake");
    f->denied = tg_stats_counter(s, "textgen_auth_failures_total",
                                 "Connections refused because of their key.", "domain", "textgen");
    f->opened = tg_stats_counter(s, "textgen_sessions_opened_total", "Hellos taken.", NULL, NULL);
    f->refused =
        tg_stats_counter(s, "textgen_sessions_refused_total", "Hellos refused.", NULL, NULL);
    f->lost = tg_stats_counter(s, "textgen_sessions_lost_total",
                               "Sessions that ended by silence or disconnection.", NULL, NULL);
    f->resumed = tg_stats_counter(s, "textgen_sessions_resumed_total",
                                  "Lost clients that came back.", NULL, NULL);
    f->expired = tg_stats_counter(s, "textgen_sessions_expired_total",
                                  "Lost clients whose lease ran out.", NULL, NULL);
    f->detached = tg_stats_gauge(s, "textgen_sessions_detached", "Lost clients that may come back.",
                                 NULL, NULL);
    f->overloaded =
        tg_stats_counter(s, "textgen_backpressure_total",
                         "Requests refused for now, by what ran out.", "reason", "credits");
    for (int i = 1; i < TG_CODE_COUNT; i++)
        f->errors[i] =
            tg_stats_counter(s, "textgen_errors_total", "Requests answered with an Error.", "code",
                             tg_code_name((tg_code)i));
}

void tg_net_figures_set(const tg_net_figures *f, const tg_net *net, const tg_link_stats *l) {
    uint64_t accepted = 0, denied = 0;
    if (net) tg_net_auth_counts(net, &accepted, &denied);
    tg_stat_set(f->sent, (double)l->sent);
    tg_stat_set(f->received, (double)l->received);
    tg_stat_set(f->sent_bytes, (double)l->sent_bytes);
    tg_stat_set(f->received_bytes, (double)l->received_bytes);
    tg_stat_set(f->bad_frames, (double)l->bad_frames);
    tg_stat_set(f->bad_handshakes, (double)l->handshakes_failed);
    tg_stat_set(f->opened, (double)l->opened);
    tg_stat_set(f->refused, (double)l->refused);
    tg_stat_set(f->lost, (double)l->lost);
    tg_stat_set(f->denied, (double)denied);
    tg_stat_set(f->resumed, (double)l->resumed);
    tg_stat_set(f->expired, (double)l->expired);
    tg_stat_set(f->detached, (double)l->detached);
    tg_stat_set(f->overloaded, (double)l->overloaded);
    for (int i = 1; i < TG_CODE_COUNT; i++) tg_stat_set(f->errors[i], (double)l->errors[i]);
}
