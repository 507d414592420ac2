/* What the slots want to send, gathered into few messages for each worker. I/O thread, mutex held. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/pool_internal.h"
#include "proto/limits.h"

enum { MAX_TOKENS_PER_MESSAGE = 1 << 20 };

/* One message in the making, for one worker. */
struct tg_pool_outgoing {
    tg_pool_slot *slots[TG_LIMIT_BATCH];
    uint32_t ids[TG_LIMIT_BATCH];
    tg_reset_item resets[TG_LIMIT_BATCH];
    tg_step_item steps[TG_LIMIT_BATCH];
    size_t n, n_tokens;
    uint64_t nearest; /* deadline */
};
typedef struct tg_pool_outgoing outgoing;

static void add(outgoing *o, tg_pool_slot *s, tg_slot_send what) {
    const tg_pool_call *c = &s->call;
    size_t i = o->n++;
    o->slots[i] = s;
    if (c->kind != TG_CALL_NONE && c->deadline_ms < o->nearest) o->nearest = c->deadline_ms;
    if (what == TG_SEND_OPEN) {
        o->ids[i] = s->id;
    } else if (what == TG_SEND_RESET) {
        o->resets[i] = s->stage == TG_STAGE_RE_RESET ? s->reset : c->reset;
    } else if (s->stage == TG_STAGE_RE_STEP) {
        o->steps[i] = (tg_step_item){s->id, s->reset.episode, 0, s->log, s->n_log};
        o->n_tokens += s->n_log;
    } else {
        o->steps[i] = (tg_step_item){s->id, c->episode, c->step, c->tokens, c->n_tokens};
        o->n_tokens += c->n_tokens;
    }
}

static tg_status send_message(tg_pool_worker *w, outgoing *o, tg_slot_send what, uint64_t seq,
                              tg_error *err) {
    uint64_t now = tg_clock_ms();
    uint64_t left = o->nearest == UINT64_MAX ? 0 : o->nearest > now ? o->nearest - now : 1;
    tg_slot_list opens = {o->ids, o->n};
    tg_reset_batch resets = {o->resets, o->n, false};
    tg_step_batch steps = {o->steps, o->n, (uint32_t)TG_MIN(left, UINT32_MAX), false};
    switch (what) {
    case TG_SEND_OPEN:
        return tg_session_send(w->session, &(tg_frame){TG_MSG_OPEN_SLOTS, 0, 0, seq}, &opens, err);
    case TG_SEND_RESET:
        return tg_session_send(w->session, &(tg_frame){TG_MSG_RESET, 0, 0, seq}, &resets, err);
    case TG_SEND_STEP:
        return tg_session_send(w->session, &(tg_frame){TG_MSG_STEP, 0, 0, seq}, &steps, err);
    case TG_SEND_NOTHING: break;
    }
    TG_UNREACHABLE();
}

static void send_batch(tg_pool *p, tg_pool_worker *w, outgoing *o, tg_slot_send what) {
    tg_error err;
    uint64_t seq = ++p->seq;
    tg_status st = o->n ? send_message(w, o, what, seq, &err) : TG_OK;
    /* Not sent: wanted still, after a pause. A worker that is gone is reported by its link meanwhile. */
    uint64_t retry = tg_clock_ms() + TG_POOL_RETRY_MS;
    if (st != TG_OK) tg_log_debug("pool", "a message waits: %s", err.msg);
    for (size_t i = 0; i < o->n; i++) {
        tg_pool_slot *s = o->slots[i];
        if (st != TG_OK) {
            s->retry_ms = retry;
            continue;
        }
        s->seq = seq;
        s->send = TG_SEND_NOTHING;
        if (what != TG_SEND_OPEN && s->stage == TG_STAGE_OPEN) s->call.sent = true;
    }
    o->n = o->n_tokens = 0;
    o->nearest = UINT64_MAX;
}

static void flush_worker(tg_pool *p, tg_pool_worker *w, outgoing *o, tg_slot_send what,
                         uint64_t now) {
    o->n = o->n_tokens = 0;
    o->nearest = UINT64_MAX;
    for (size_t i = 0; i < p->n_slots; i++) {
        tg_pool_slot *s = &p->slots[i];
        if (s->worker != w || s->send != what || s->retry_ms > now) continue;
        add(o, s, what);
        if (o->n == TG_LIMIT_BATCH || o->n_tokens >= MAX_TOKENS_PER_MESSAGE)
            send_batch(p, w, o, what);
    }
    send_batch(p, w, o, what);
}

void tg_pool_flush(tg_pool *p) {
    bool any = false;
    for (size_t i = 0; i < p->n_slots && !any; i++) any = p->slots[i].send != TG_SEND_NOTHING;
    if (!any) return;
    if (!p->outgoing) p->outgoing = tg_alloc(sizeof *p->outgoing);
    if (!p->outgoing) return; /* the next tick tries again */
    uint64_t now = tg_clock_ms();
    for (tg_pool_worker *w = p->workers; w; w = w->next) {
        for (tg_slot_send what = TG_SEND_OPEN; what <= TG_SEND_STEP; what++)
            flush_worker(p, w, p->outgoing, what, now);
    }
}
