/* How requests were answered, by method and code, and how long that took: textgen_requests_total and
 * textgen_request_duration_seconds. Counted on one thread, without memory; shown when somebody looks.
 *
 *     tg_answers_add(&link->answers, TG_MSG_STEP, TG_CODE_OK);
 *     tg_answer_figures_init(&figures, stats, "textgen_requests_total", "textgen_request_duration_seconds");
 *     tg_answer_figures_took(&figures, TG_MSG_STEP, seconds);
 *     tg_answer_figures_set(&figures, &link->answers); */
#ifndef TG_NET_ANSWERS_H
#define TG_NET_ANSWERS_H

#include "common/net/stats.h"
#include "proto/messages.h"

enum { TG_ANSWER_TYPES = TG_MSG_CANCEL + 1 };

typedef struct tg_answers {
    uint64_t n[TG_ANSWER_TYPES][TG_CODE_COUNT]; /* by type of the request */
} tg_answers;

/* A request, or its reply, of this type had this answer. */
void tg_answers_add(tg_answers *a, tg_msg_type type, tg_code code);
/* What the last message of an answer says: its code, or the first of its items' that is not OK. */
tg_code tg_answer_code(tg_msg_type reply, const void *msg);
/* The type of the requests that this type answers; the type itself when it is none. */
tg_msg_type tg_answer_method(tg_msg_type reply);

typedef struct tg_answer_figures {
    tg_stats *stats; /* borrowed; NULL: not shown */
    const char *counts, *times;
    tg_stat *count[TG_ANSWER_TYPES][TG_CODE_COUNT]; /* made when first seen */
    tg_stat *time[TG_ANSWER_TYPES];
} tg_answer_figures;

/* Names are borrowed. The series of what every client asks are there from the start. */
void tg_answer_figures_init(tg_answer_figures *f, tg_stats *stats, const char *counts,
                            const char *times);
void tg_answer_figures_took(tg_answer_figures *f, tg_msg_type type, double seconds);
void tg_answer_figures_set(tg_answer_figures *f, const tg_answers *a);

#endif
