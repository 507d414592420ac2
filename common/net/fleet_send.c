/* What the slots want to send, gathered into few messages for each worker, within its credits. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/fleet_impl.h"
#include "proto/limits.h"

enum { MAX_TOKENS_PER_MESSAGE = 1 << 20 };

/* One message in the making, for one worker. */
struct tg_fleet_outgoing {
    tg_fleet_slot *slots[TG_LIMIT_BATCH];
    union {
        uint32_t ids[TG_LIMIT_BATCH];
        tg_reset_item resets[TG_LIMIT_BATCH];
        tg_step_item steps[TG_LIMIT_BATCH];
        tg_restore_item restores[TG_LIMIT_BATCH];
    } of;
    size_t n, n_tokens;
    uint64_t nearest; /* deadline */
    bool want_text;   /* some call does */
};
typedef struct tg_fleet_outgoing outgoing;

static const tg_msg_type types[TG_SEND_KINDS] = {[TG_SEND_OPEN] = TG_MSG_OPEN_SLOTS,
                                                 [TG_SEND_RESTORE] = TG_MSG_RESTORE,
                                                 [TG_SEND_RESET] = TG_MSG_RESET,
                                                 [TG_SEND_STEP] = TG_MSG_STEP};

static tg_restore_item restore_of(const tg_fleet_slot *s) {
    return (tg_restore_item){.slot = s->id,
                             .episode = s->reset.episode,
                             .seed = s->reset.seed,
                             .split = s->reset.split,
                             .sample = s->reset.sample,
                             .tokens = s->log,
                             .rewards = s->rewards,
                             .n_tokens = s->n_log,
                             .reset_digest = s->reset_digest,
                             .state_digest = s->digest};
}

static void add(outgoing *o, tg_fleet_slot *s, tg_slot_send what) {
    const tg_fleet_call *c = &s->call;
    size_t i = o->n++;
    o->slots[i] = s;
    if (c->kind != TG_CALL_NONE) o->nearest = TG_MIN(o->nearest, c->deadline_ms);
    o->want_text |= c->kind != TG_CALL_NONE && c->want_text;
    switch (what) {
    case TG_SEND_OPEN: o->of.ids[i] = s->id; break;
    case TG_SEND_RESET: o->of.resets[i] = c->reset; break;
    case TG_SEND_STEP:
        o->of.steps[i] = (tg_step_item){s->id, c->episode, c->step, c->tokens, c->n_tokens};
        o->n_tokens += c->n_tokens;
        break;
    case TG_SEND_RESTORE:
        o->of.restores[i] = restore_of(s);
        o->n_tokens += 3 * s->n_log; /* a reward is as long as two tokens */
        break;
    default: TG_UNREACHABLE();
    }
}

static tg_status send_message(tg_fleet_worker *w, outgoing *o, tg_slot_send what, uint64_t seq,
                              tg_error *err) {
    uint64_t now = tg_clock_ms();
    uint64_t left = o->nearest == UINT64_MAX ? 0 : o->nearest > now ? o->nearest - now : 1;
    tg_slot_list opens = {o->of.ids, o->n};
    tg_reset_batch resets = {o->of.resets, o->n, o->want_text};
    tg_step_batch steps = {o->of.steps, o->n, (uint32_t)TG_MIN(left, UINT32_MAX), o->want_text};
    tg_restore_batch restores = {o->of.restores, o->n};
    const void *bodies[TG_SEND_KINDS] = {[TG_SEND_OPEN] = &opens,
                                         [TG_SEND_RESTORE] = &restores,
                                         [TG_SEND_RESET] = &resets,
                                         [TG_SEND_STEP] = &steps};
    return tg_session_send(w->session, &(tg_frame){.type = types[what], .seq = seq}, bodies[what],
                           err);
}

/* Not sent: wanted still, after a pause. A worker that is gone is reported by its link meanwhile. */
static void put_off(tg_fleet *f, outgoing *o, const tg_error *err) {
    uint64_t retry = tg_clock_ms() + TG_FLEET_RETRY_MS;
    tg_log_debug("pool", "a message waits: %s", err->msg);
    for (size_t i = 0; i < o->n; i++) {
        o->slots[i]->retry_ms = retry;
        tg_slot_enqueue(&f->later, o->slots[i]);
    }
}

static void sent(outgoing *o, tg_slot_send what, uint64_t seq) {
    uint64_t now = tg_clock_ms();
    for (size_t i = 0; i < o->n; i++) {
        tg_fleet_slot *s = o->slots[i];
        s->seq = seq;
        s->send = TG_SEND_NOTHING;
        s->waits = true;
        s->sent_ms = now;
        if (what == TG_SEND_RESET || what == TG_SEND_STEP) s->call.sent = true;
    }
}

static void flush_kind(tg_fleet *f, tg_fleet_worker *w, outgoing *o, tg_slot_send what) {
    tg_slot_queue *q = &w->sending[what];
    while (q->first && (!w->credits || w->unanswered < w->credits)) {
        o->n = o->n_tokens = 0;
        o->want_text = false;
        o->nearest = UINT64_MAX;
        while (q->first && o->n < w->max_batch && o->n_tokens < w->max_tokens) {
            tg_fleet_slot *s = q->first;
            tg_slot_dequeue(s);
            add(o, s, what);
        }
        tg_error err;
        uint64_t seq = ++f->seq;
        if (send_message(w, o, what, seq, &err) != TG_OK) {
            put_off(f, o, &err);
            return;
        }
        sent(o, what, seq);
        tg_fleet_sent(f, types[what], seq);
        if (w->credits) w->flights[w->unanswered++] = seq;
    }
}

/* ---- credits -------------------------------------------------------------------------------- */

enum { MAX_CREDITS = 1024 };

tg_status tg_fleet_worker_create(tg_fleet_worker **out, tg_session *session, tg_error *err) {
    tg_fleet_worker *w = *out = tg_alloc(sizeof *w);
    if (!w) return tg_fail_nomem(err, sizeof *w);
    w->session = session;
    w->max_batch = tg_session_limits(session)->max_batch;
    /* with its reward a token takes 12 bytes, and the last item may pass the mark */
    w->max_tokens = TG_MIN(MAX_TOKENS_PER_MESSAGE, tg_session_limits(session)->max_message / 32);
    w->credits = TG_MIN(tg_session_credits(session), MAX_CREDITS);
    if (w->credits) w->flights = tg_alloc_array(w->credits, sizeof *w->flights);
    if (w->credits && !w->flights) {
        tg_fleet_worker_free(w);
        *out = NULL;
        return tg_fail_nomem(err, MAX_CREDITS * sizeof *w->flights);
    }
    return TG_OK;
}

void tg_fleet_worker_free(tg_fleet_worker *w) {
    if (!w) return;
    tg_free(w->flights);
    tg_free(w);
}

void tg_fleet_answered(tg_fleet_worker *w, uint64_t seq) {
    for (uint32_t i = 0; i < w->unanswered; i++) {
        if (w->flights[i] != seq) continue;
        w->flights[i] = w->flights[--w->unanswered];
        return;
    }
}

/* ---- everything that is wanted -------------------------------------------------------------- */

void tg_fleet_flush(tg_fleet *f) {
    if (f->closed) return;
    if (!f->outgoing) f->outgoing = tg_alloc(sizeof *f->outgoing);
    if (!f->outgoing) return; /* the next tick tries again */
    for (tg_fleet_worker *w = f->workers; w; w = w->next) {
        if (w->detached) continue;
        for (tg_slot_send what = TG_SEND_OPEN; what < TG_SEND_KINDS; what++)
            if (w->sending[what].first) flush_kind(f, w, f->outgoing, what);
    }
}
