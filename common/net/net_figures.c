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
}
