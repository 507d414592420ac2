/* Finished calls on their way to the caller. Memory for an event can fail: then the call stays under way and its deadline
 * will try again, so no event is ever dropped. Mutex held. */
#include "common/base/alloc.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"

#include <stdio.h>

void tg_pool_reply_unref(tg_pool_reply *r) {
    if (!r || --r->refs > 0) return;
    tg_msg_free(r->msg);
    tg_free(r);
}

void tg_pool_node_free(tg_pool_node *n) {
    if (!n) return;
    tg_pool_reply_unref(n->reply);
    tg_free(n);
}

static void append(tg_pool *p, tg_pool_node *n) {
    if (p->last_event) {
        p->last_event->next = n;
    } else {
        p->events = n;
    }
    p->last_event = n;
    p->n_events++;
    pthread_cond_broadcast(&p->changed);
}

static void end_call(tg_pool *p, tg_pool_slot *s) {
    s->call.kind = TG_CALL_NONE;
    s->call.sent = false;
    if (s->stage == TG_STAGE_OPEN)
        s->send = TG_SEND_NOTHING; /* a request not yet sent dies with its call */
    p->calls--;
}

void tg_pool_post(tg_pool *p, const tg_pool_event *event, tg_pool_reply *reply) {
    uint32_t slot = event->kind == TG_POOL_RESET ? event->reset.slot : event->step.slot;
    tg_pool_node *n = tg_alloc(sizeof *n);
    if (!n) return;
    n->event = *event;
    n->reply = reply;
    reply->refs++;
    end_call(p, &p->slots[slot]);
    append(p, n);
}

void tg_pool_post_failure(tg_pool *p, const tg_pool_slot *s, tg_code code, const char *why) {
    tg_pool_node *n = tg_alloc(sizeof *n);
    if (!n) return;
    snprintf(n->text, sizeof n->text, "%s", why);
    if (s->call.kind == TG_CALL_RESET) {
        n->event.kind = TG_POOL_RESET;
        n->event.reset = (tg_reset_result){.slot = s->id,
                                           .episode = s->call.reset.episode,
                                           .code = code,
                                           .message = n->text,
                                           .prompt_text = "",
                                           .sample_id = ""};
    } else {
        n->event.kind = TG_POOL_STEP;
        n->event.step = (tg_step_result){.slot = s->id,
                                         .episode = s->call.episode,
                                         .step = s->call.step,
                                         .code = code,
                                         .message = n->text,
                                         .text = "",
                                         .stop = TG_STOP_ABORTED};
    }
    end_call(p, &p->slots[s->id]);
    append(p, n);
}
