/* Questions of a client that any worker can answer: samples, metrics, scores of texts. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "env-server/broker/broker_impl.h"
#include "proto/codec.h"

enum { ASK_MS = 600000 };

typedef struct question {
    tg_fleet_ask ask; /* first: an ask is its question */
    tg_broker *broker;
    uint64_t session;
    tg_frame head;
    uint64_t start_ns;
    void *msg; /* owned: the request */
} question;

static void on_answer(tg_fleet_ask *ask) {
    question *q = (question *)ask;
    tg_broker *b = q->broker;
    tg_session *session = tg_link_find(b->front, q->session);
    tg_frame to = {.type = ask->reply_type, .flags = TG_FRAME_REPLY, .seq = q->head.seq};
    if (ask->status == TG_OK)
        tg_broker_send(b, q->session, &to, ask->reply);
    else if (session)
        tg_session_send_error(session, &q->head, ask->code, "%s", ask->error.msg);
    tg_broker_took(b, q->head.type, q->start_ns);
    tg_msg_free(ask->reply);
    tg_msg_free(q->msg);
    tg_free(q);
    b->n_asks--;
}

void tg_broker_ask(tg_broker *b, tg_session *session, const tg_frame *head, tg_msg_type reply,
                   uint32_t deadline_ms, void *msg) {
    question *q = tg_alloc(sizeof *q);
    if (!q) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        tg_msg_free(msg);
        return;
    }
    q->broker = b, q->session = tg_session_id(session), q->head = *head, q->msg = msg;
    q->start_ns = tg_clock_ns();
    q->ask = (tg_fleet_ask){.type = head->type,
                            .reply_type = reply,
                            .request = msg,
                            .deadline_ms = tg_broker_deadline(deadline_ms, ASK_MS),
                            .on_done = on_answer};
    b->n_asks++;
    tg_fleet_ask_begin(b->fleet, &q->ask);
}
