/* Step batches whose rewards are slow: every slot's reward is a job of its own, so one slow text does not
 * hold up the others: its result leaves when it is there, or at the deadline.
 *
 * A job that is given up (cancelled, or late) keeps the episode's memory it works on: the slot gets another one at
 * once, and what the job still finds is thrown away. Results borrow from the slots, so each is sent before its slot
 * is used again. */
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "env-server/server/server_impl.h"

#include <stdatomic.h>

typedef struct step_call step_call;

typedef struct tg_step_job {
    tg_job job; /* first: a job is its step_job */
    step_call *call;
    tg_client_slot *slot; /* NULL: answered, or never under way */
    tg_slot *work;        /* what is scored; the slot's own, or ours when given up */
    size_t index;
    atomic_bool given_up; /* read by the pool's thread: do not begin */
} tg_step_job;

struct step_call {
    tg_server *server;
    tg_client *client; /* referenced */
    uint64_t session, epoch, start_ns;
    tg_frame head;
    tg_deadline deadline;
    size_t n, pending;               /* pending: without a result yet */
    size_t running;                  /* jobs in flight; those of given-up items too */
    tg_step_result *results, *ready; /* ready: a message's worth, while it is sent */
    bool *unsent;                    /* a result is there and was not sent */
    tg_step_job *jobs;
};

static void free_call(step_call *c) {
    tg_client_unref(c->client);
    tg_free(c->results);
    tg_free(c->unsent);
    tg_free(c->jobs);
    tg_free(c);
}

/* Sends the results that are there. After the last one the call is over, as soon as no job needs it. */
static void send_ready(step_call *c) {
    tg_server *s = c->server;
    tg_session *session = tg_link_find(s->link, c->session);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->unsent[i]) c->ready[n++] = c->results[i];
        c->unsent[i] = false;
    }
    if (session && tg_session_epoch(session) == c->epoch) { /* else nobody waits for it */
        tg_step_reply reply = {c->ready, n};
        tg_frame head = c->head;
        head.flags = c->pending ? TG_FRAME_MORE : 0;
        tg_server_reply(s, session, &head, TG_MSG_STEP_REPLY, &reply);
    }
    if (c->pending) return;
    tg_figures_request(&s->figures, TG_MSG_STEP, c->start_ns);
    tg_deadline_clear(&s->deadlines, &c->deadline);
    if (c->running == 0) free_call(c);
}

/* The item's result stands in c->results. */
static void answered(step_call *c, tg_step_job *j) {
    if (j->slot) j->slot->call = NULL;
    j->slot = NULL;
    c->unsent[j->index] = true;
    c->pending--;
}

static void recount(tg_step_job *j) {
    if (j->slot && !j->call->client->closed) tg_server_recount(j->call->server, j->slot);
}

/* The episode's memory goes to the job; the slot goes on with fresh. */
static void give_up(tg_step_job *j, tg_slot *fresh) {
    atomic_store(&j->given_up, true);
    j->slot->slot = fresh;
    recount(j);
    answered(j->call, j);
}

static void run(tg_job *job) {
    tg_step_job *j = (tg_step_job *)job;
    if (!atomic_load(&j->given_up)) tg_slot_score(j->call->server->env, j->work);
}

static void done(tg_job *job) {
    tg_step_job *j = (tg_step_job *)job;
    step_call *c = j->call;
    tg_server *s = c->server;
    c->running--;
    if (atomic_load(&j->given_up)) {
        tg_client_drop_episode(j->work);
        if (c->pending == 0 && c->running == 0) free_call(c);
    } else {
        tg_slot_step_end(s->env, j->work, &c->results[j->index]);
        s->steps += c->results[j->index].n_applied;
        recount(j);
        answered(c, j);
        send_ready(c);
    }
    tg_service_call_ended(&s->service);
}

static void expire(tg_deadline *d) {
    step_call *c = (step_call *)((char *)d - offsetof(step_call, deadline));
    tg_server *s = c->server;
    for (size_t i = 0; i < c->n; i++) {
        tg_step_job *j = &c->jobs[i];
        if (!j->slot) continue;
        tg_error err = {0};
        tg_slot *fresh = tg_client_new_episode(s->env, j->slot->id);
        tg_step_result *r = &c->results[i];
        tg_status st = fresh ? tg_slot_give_up(s->env, j->work, fresh, r, &err) : TG_NOMEM;
        if (st == TG_OK) {
            s->steps += r->n_applied;
            s->late++;
            tg_env_count_timeout(s->env);
            give_up(j, fresh);
        } else { /* it stays under way: its answer comes late rather than wrong */
            tg_log_warn("env", "a late reward cannot be given up: %s", err.msg);
            tg_client_drop_episode(fresh);
        }
    }
    send_ready(c);
}

bool tg_server_cancel(tg_server *s, tg_client_slot *slot) {
    tg_step_job *j = slot->call;
    if (!j) return true;
    step_call *c = j->call;
    tg_slot *fresh = tg_client_new_episode(s->env, slot->id);
    if (!fresh) return false;
    tg_step_result *r = &c->results[j->index];
    r->code = TG_CODE_FAILED_STATE;
    r->message = "cancelled";
    r->text = "";
    give_up(j, fresh);
    send_ready(c);
    return true;
}

static void begin(step_call *c, const tg_step_batch *batch, size_t i) {
    tg_server *s = c->server;
    const tg_step_item *item = &batch->items[i];
    tg_step_result *r = &c->results[i];
    tg_step_job *j = &c->jobs[i];
    *r = (tg_step_result){.slot = item->slot, .episode = item->episode, .step = item->step};
    r->text = r->message = "";
    c->unsent[i] = true;
    tg_client_slot *slot = tg_server_slot(s, c->client, item->slot, &r->code, &r->message);
    if (slot && !slot->slot) r->code = TG_CODE_FAILED_STATE, r->message = "step before reset";
    if (!slot || !slot->slot) return;
    if (!tg_slot_step_begin(s->env, slot->slot, item, batch->want_text, r)) return;
    j->job = (tg_job){.run = run, .done = done};
    j->call = c, j->index = i, j->work = slot->slot;
    if (tg_jobs_submit(s->jobs, &j->job)) {
        j->slot = slot;
        slot->call = j;
        c->unsent[i] = false;
        c->pending++;
        c->running++;
        return;
    }
    tg_link_count_pressure(s->link, TG_PRESSURE_QUEUE);
    slot->slot->scored = TG_BUSY; /* no room in the queue: the step is taken back */
    tg_slot_step_end(s->env, slot->slot, r);
}

void tg_server_step_slow(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                         const tg_step_batch *batch) {
    step_call *c = tg_alloc(sizeof *c);
    tg_step_result *results = tg_alloc_array(2 * batch->n + 1, sizeof *results);
    bool *unsent = tg_alloc_array(batch->n + 1, sizeof *unsent);
    tg_step_job *jobs = tg_alloc_array(batch->n + 1, sizeof *jobs);
    if (!c || !results || !unsent || !jobs) {
        tg_free(c);
        tg_free(results);
        tg_free(unsent);
        tg_free(jobs);
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    *c = (step_call){.server = s, .client = client, .head = *head, .n = batch->n};
    c->session = tg_session_id(session), c->epoch = tg_session_epoch(session);
    c->results = results, c->ready = results + batch->n, c->unsent = unsent, c->jobs = jobs;
    c->deadline.expire = expire;
    c->start_ns = s->message_ns;
    tg_client_ref(client);
    for (size_t i = 0; i < batch->n; i++) begin(c, batch, i);
    if (c->pending == 0)
        send_ready(c);
    else
        tg_deadline_set(&s->deadlines, &c->deadline, batch->deadline_ms);
}
