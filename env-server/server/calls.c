/* Step batches whose rewards are slow: every slot's reward is a job of its own, so one slow text does not
 * hold up the others; the reply leaves when the last is there. Results borrow from the slots, so
 * these stay busy until then. */
#include "common/base/alloc.h"
#include "env-server/server/server_impl.h"

typedef struct step_call step_call;

typedef struct step_job {
    tg_job job; /* first: a job is its step_job */
    step_call *call;
    tg_client_slot *slot;
    size_t index;
} step_job;

struct step_call {
    tg_server *server;
    tg_client *client; /* referenced */
    uint64_t session;
    tg_frame head;
    size_t n, pending;
    tg_step_result *results;
    step_job *jobs;
};

static void finish(step_call *c) {
    tg_server *s = c->server;
    tg_session *session = tg_link_find(s->link, c->session);
    tg_step_reply reply = {c->results, c->n};
    if (session) tg_server_reply(s, session, &c->head, TG_MSG_STEP_REPLY, &reply);
    for (size_t i = 0; i < c->n; i++)
        if (c->jobs[i].slot) c->jobs[i].slot->busy = false;
    tg_client_unref(c->client);
    tg_free(c->results);
    tg_free(c->jobs);
    tg_free(c);
}

static void run(tg_job *job) {
    step_job *j = (step_job *)job;
    tg_slot_score(j->call->server->env, &j->slot->slot);
}

static void done(tg_job *job) {
    step_job *j = (step_job *)job;
    step_call *c = j->call;
    tg_server *s = c->server;
    tg_slot_step_end(s->env, &j->slot->slot, &c->results[j->index]);
    if (--c->pending == 0) finish(c);
    tg_server_check_drained(s);
}

static void begin(step_call *c, const tg_step_batch *batch, size_t i) {
    tg_server *s = c->server;
    const tg_step_item *item = &batch->items[i];
    tg_step_result *r = &c->results[i];
    step_job *j = &c->jobs[i];
    *r = (tg_step_result){.slot = item->slot, .episode = item->episode, .step = item->step};
    r->text = r->message = "";
    tg_client_slot *slot = tg_server_slot(s, c->client, item->slot, &r->code, &r->message);
    if (!slot) return;
    j->slot = slot;
    slot->busy = true;
    if (!tg_slot_step_begin(s->env, &slot->slot, item, batch->want_text, r)) return;
    j->job = (tg_job){.run = run, .done = done};
    j->call = c, j->index = i;
    if (tg_jobs_submit(s->jobs, &j->job)) {
        c->pending++;
        return;
    }
    slot->slot.scored = TG_NOMEM; /* no room in the queue: the step is taken back */
    tg_slot_step_end(s->env, &slot->slot, r);
}

void tg_server_step_slow(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                         const tg_step_batch *batch) {
    step_call *c = tg_alloc(sizeof *c);
    tg_step_result *results = tg_alloc_array(batch->n + 1, sizeof *results);
    step_job *jobs = tg_alloc_array(batch->n + 1, sizeof *jobs);
    if (!c || !results || !jobs) {
        tg_free(c);
        tg_free(results);
        tg_free(jobs);
        tg_session_send_error(session, head, TG_CODE_OVERLOADED, "out of memory");
        return;
    }
    *c = (step_call){.server = s, .client = client, .head = *head, .n = batch->n};
    c->session = tg_session_id(session), c->results = results, c->jobs = jobs;
    c->pending = 1; /* held until all are submitted */
    tg_client_ref(client);
    for (size_t i = 0; i < batch->n; i++) begin(c, batch, i);
    if (--c->pending == 0) finish(c);
}
