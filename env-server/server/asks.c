/* Samples, metrics and scores: read-only questions, answered on the job pool. The request belongs to its
 * job; the answer goes to the session if that still exists. One that is late is answered without it. */
#include "common/base/alloc.h"
#include "env-server/server/server_impl.h"
#include "proto/codec.h"

typedef struct ask {
    tg_job job; /* first: a job is its ask */
    tg_server *server;
    uint64_t session, epoch, start_ns;
    tg_frame head;
    void *msg;
    tg_arena arena;
    tg_deadline deadline;
    bool answered;
    union {
        tg_samples samples;
        tg_metric_reply metric;
        tg_score_reply score;
    } reply;
    tg_msg_type reply_type;
    tg_status status;
    tg_error error;
} ask;

static void run(tg_job *job) {
    ask *a = (ask *)job;
    const tg_env *env = a->server->env;
    switch (a->head.type) {
    case TG_MSG_SAMPLE_RANGE:
        a->reply_type = TG_MSG_SAMPLES;
        a->status = tg_env_samples(env, a->msg, &a->arena, &a->reply.samples, &a->error);
        break;
    case TG_MSG_METRIC:
        a->reply_type = TG_MSG_METRIC_REPLY;
        a->status = tg_env_metric(env, a->msg, &a->arena, &a->reply.metric, &a->error);
        break;
    default:
        a->reply_type = TG_MSG_SCORE_REPLY;
        a->status = tg_env_score(env, a->msg, &a->arena, &a->reply.score, &a->error);
    }
}

static void free_ask(ask *a) {
    tg_msg_free(a->msg);
    tg_arena_fini(&a->arena);
    tg_free(a);
}

/* Who asked, if it is still waiting. */
static tg_session *asker(const ask *a) {
    tg_session *session = tg_link_find(a->server->link, a->session);
    return session && tg_session_epoch(session) == a->epoch ? session : NULL;
}

static void done(tg_job *job) {
    ask *a = (ask *)job;
    tg_server *s = a->server;
    tg_session *session = a->answered ? NULL : asker(a);
    if (!a->answered) tg_figures_request(&s->figures, a->head.type, a->start_ns);
    tg_deadline_clear(&s->deadlines, &a->deadline);
    if (session && a->status == TG_OK)
        tg_server_reply(s, session, &a->head, a->reply_type, &a->reply);
    else if (session)
        tg_session_send_error(session, &a->head, tg_env_code(a->status), "%s", a->error.msg);
    free_ask(a);
    tg_service_call_ended(&s->service);
}

static void expire(tg_deadline *d) {
    ask *a = (ask *)((char *)d - offsetof(ask, deadline));
    tg_session *session = asker(a);
    a->answered = true;
    a->server->late++;
    tg_figures_request(&a->server->figures, a->head.type, a->start_ns);
    if (session)
        tg_session_send_error(session, &a->head, TG_CODE_DEADLINE_EXCEEDED,
                              "no answer within the deadline of the request");
}

static uint32_t deadline_of(const tg_frame *head, const void *msg) {
    if (head->type == TG_MSG_METRIC) return ((const tg_metric_request *)msg)->deadline_ms;
    return head->type == TG_MSG_SCORE ? ((const tg_score_request *)msg)->deadline_ms : 0;
}

void tg_server_ask(tg_server *s, tg_session *session, const tg_frame *head, void *msg) {
    ask *a = tg_alloc(sizeof *a);
    if (!a) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        tg_msg_free(msg);
        return;
    }
    *a = (ask){.job = {.run = run, .done = done}, .server = s, .msg = msg, .head = *head};
    a->session = tg_session_id(session), a->epoch = tg_session_epoch(session);
    a->deadline.expire = expire;
    a->start_ns = s->message_ns;
    if (tg_jobs_submit(s->jobs, &a->job)) {
        tg_deadline_set(&s->deadlines, &a->deadline, deadline_of(head, msg));
        return;
    }
    tg_session_send_busy(session, head, TG_PRESSURE_QUEUE, "too many calls are waiting");
    free_ask(a);
}
