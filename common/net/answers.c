/* A table of counts, and its series. Types and codes are bounded, so the labels are. */
#include "common/net/answers.h"

#include <stdio.h>

tg_msg_type tg_answer_method(tg_msg_type reply) {
    switch (reply) {
    case TG_MSG_WELCOME: return TG_MSG_HELLO;
    case TG_MSG_SLOTS_OPENED: return TG_MSG_OPEN_SLOTS;
    case TG_MSG_RESET_REPLY: return TG_MSG_RESET;
    case TG_MSG_STEP_REPLY: return TG_MSG_STEP;
    case TG_MSG_SAMPLES: return TG_MSG_SAMPLE_RANGE;
    case TG_MSG_METRIC_REPLY: return TG_MSG_METRIC;
    case TG_MSG_SCORE_REPLY: return TG_MSG_SCORE;
    case TG_MSG_RESTORE_REPLY: return TG_MSG_RESTORE;
    case TG_MSG_SNAPSHOT_REPLY: return TG_MSG_SNAPSHOT;
    default: return reply;
    }
}

void tg_answers_add(tg_answers *a, tg_msg_type type, tg_code code) {
    type = tg_answer_method(type);
    if ((unsigned)type < TG_ANSWER_TYPES && (unsigned)code < TG_CODE_COUNT) a->n[type][code]++;
}

#define FIRST_BAD(batch)                                                                           \
    do {                                                                                           \
        for (size_t i = 0; i < (batch)->n; i++)                                                    \
            if ((batch)->items[i].code != TG_CODE_OK) return (batch)->items[i].code;               \
    } while (0)

tg_code tg_answer_code(tg_msg_type reply, const void *msg) {
    switch (reply) {
    case TG_MSG_RESET_REPLY: FIRST_BAD((const tg_reset_reply *)msg); break;
    case TG_MSG_STEP_REPLY: FIRST_BAD((const tg_step_reply *)msg); break;
    case TG_MSG_RESTORE_REPLY: FIRST_BAD((const tg_restore_reply *)msg); break;
    case TG_MSG_ERROR: return ((const tg_wire_error *)msg)->code;
    default: break;
    }
    return TG_CODE_OK;
}

/* ---- figures -------------------------------------------------------------------------------- */

static tg_stat *counter(tg_answer_figures *f, tg_msg_type type, tg_code code) {
    char values[64];
    if (!f->count[type][code]) {
        snprintf(values, sizeof values, "%s,%s", tg_msg_name(type), tg_code_name(code));
        f->count[type][code] = tg_stats_counter(f->stats, f->counts, "Requests, by their answers.",
                                                "method,code", values);
    }
    return f->count[type][code];
}

static tg_stat *timer(tg_answer_figures *f, tg_msg_type type) {
    if (!f->time[type])
        f->time[type] =
            tg_stats_histogram(f->stats, f->times, "From a request to the end of its answer.",
                               "method", tg_msg_name(type));
    return f->time[type];
}

void tg_answer_figures_init(tg_answer_figures *f, tg_stats *stats, const char *counts,
                            const char *times) {
    static const tg_msg_type usual[] = {TG_MSG_OPEN_SLOTS, TG_MSG_RESET, TG_MSG_STEP};
    f->stats = stats, f->counts = counts, f->times = times;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        counter(f, usual[i], TG_CODE_OK);
        timer(f, usual[i]);
    }
}

void tg_answer_figures_took(tg_answer_figures *f, tg_msg_type type, double seconds) {
    type = tg_answer_method(type);
    if (f->stats && (unsigned)type < TG_ANSWER_TYPES) tg_stat_observe(timer(f, type), seconds);
}

void tg_answer_figures_set(tg_answer_figures *f, const tg_answers *a) {
    for (unsigned t = 0; t < TG_ANSWER_TYPES; t++)
        for (unsigned c = 0; c < TG_CODE_COUNT; c++)
            if (a->n[t][c] || f->count[t][c])
                tg_stat_set(counter(f, (tg_msg_type)t, (tg_code)c), (double)a->n[t][c]);
}
