/* Counters that links and nets keep themselves, copied when somebody looks. */
#include "common/net/net_figures.h"

static tg_stat *protocol_errors(tg_stats *s, const char *kind) {
    return tg_stats_counter(s, "textgen_protocol_errors_total",
                            "What peers said wrong, by what was wrong with it.", "kind", kind);
}

static void make_missed(tg_stat *missed[TG_ROLE_REWARD + 1], tg_stats *s) {
    static const char *const roles[] = {
        [TG_ROLE_CLIENT] = "client", [TG_ROLE_WORKER] = "worker", [TG_ROLE_REWARD] = "reward"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (roles[i])
            missed[i] = tg_stats_counter(s, "textgen_heartbeats_missed_total",
                                         "Heartbeats of peers that did not come in time.",
                                         "peer_role", roles[i]);
}

void tg_net_figures_init(tg_net_figures *f, tg_stats *s) {
    static const char *const reasons[TG_PRESSURES] = {"credits", "slots",  "queue", "sessions",
                                                      "workers", "memory", "reader"};
    f->received =
        tg_stats_counter(s, "textgen_messages_received_total", "Whole messages.", NULL, NULL);
    f->sent = tg_stats_counter(s, "textgen_messages_sent_total", "Whole messages.", NULL, NULL);
    f->received_bytes =
        tg_stats_counter(s, "textgen_bytes_received_total", "Of messages.", NULL, NULL);
    f->sent_bytes = tg_stats_counter(s, "textgen_bytes_sent_total", "Of messages.", NULL, NULL);
    f->bad_frames = protocol_errors(s, "frame");
    f->bad_handshakes = protocol_errors(s, "handshake");
    f->bad_version = protocol_errors(s, "version");
    f->bad_session = protocol_errors(s, "session");
    f->bad_method = protocol_errors(s, "method");
    f->no_hello = protocol_errors(s, "no_hello");
    make_missed(f->missed, s);
    tg_answer_figures_init(&f->answers, s, "textgen_requests_total",
                           "textgen_request_duration_seconds");
    f->credits =
        tg_stats_gauge(s, "textgen_credits_available",
                       "Requests that connected peers may still send before answers.", NULL, NULL);
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
    for (int i = 0; i < TG_PRESSURES; i++)
        f->pressure[i] =
            tg_stats_counter(s, "textgen_backpressure_total",
                             "Requests refused for now, by what ran out.", "reason", reasons[i]);
    for (int i = 1; i < TG_CODE_COUNT; i++)
        f->errors[i] =
            tg_stats_counter(s, "textgen_errors_total", "Requests answered with an Error.", "code",
                             tg_code_name((tg_code)i));
}

static uint64_t unexpected(const tg_answers *a) {
    uint64_t n = 0;
    for (int t = 0; t < TG_ANSWER_TYPES; t++) n += a->n[t][TG_CODE_PROTOCOL];
    return n;
}

void tg_net_figures_set(tg_net_figures *f, const tg_link_stats *l, const tg_answers *answers,
                        uint64_t denied) {
    if (answers) {
        tg_answer_figures_set(&f->answers, answers);
        tg_stat_set(f->bad_method, (double)unexpected(answers));
    }
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
    tg_stat_set(f->bad_version, (double)l->errors[TG_CODE_UNSUPPORTED_VERSION]);
    tg_stat_set(f->bad_session, (double)l->errors[TG_CODE_FENCED]);
    tg_stat_set(f->no_hello, (double)l->cut);
    tg_stat_set(f->credits, (double)(l->credits - l->unanswered));
    for (int i = 0; i < TG_PRESSURES; i++) tg_stat_set(f->pressure[i], (double)l->pressure[i]);
    for (int i = 0; i <= TG_ROLE_REWARD; i++)
        if (f->missed[i]) tg_stat_set(f->missed[i], (double)l->missed[i]);
    for (int i = 1; i < TG_CODE_COUNT; i++) tg_stat_set(f->errors[i], (double)l->errors[i]);
}
