/* A slot: on which worker it lives, how a lost episode comes back. */
#include "common/base/clock.h"
#include "common/net/fleet_impl.h"

void tg_slot_dequeue(tg_fleet_slot *s) {
    tg_slot_queue *q = s->queue;
    if (!q) return;
    if (s->prev)
        s->prev->next = s->next;
    else
        q->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    else
        q->last = s->prev;
    s->queue = NULL;
    s->next = s->prev = NULL;
}

void tg_slot_enqueue(tg_slot_queue *q, tg_fleet_slot *s) {
    tg_slot_dequeue(s);
    s->queue = q;
    s->prev = q->last;
    if (q->last)
        q->last->next = s;
    else
        q->first = s;
    q->last = s;
}

/* ---- placing -------------------------------------------------------------------------------- */

static tg_fleet_worker *least_loaded(const tg_fleet *f) {
    tg_fleet_worker *best = NULL;
    uint64_t now = 0;
    for (tg_fleet_worker *w = f->workers; w; w = w->next) {
        if (w->scores || w->draining || w->detached || (w->capacity && w->load >= w->capacity))
            continue;
        if (w->full_until_ms && w->full_until_ms > (now ? now : (now = tg_clock_ms()))) continue;
        if (!best || w->load < best->load) best = w;
    }
    return best;
}

static void want(tg_fleet_slot *s, tg_slot_send what) {
    s->send = what;
    s->waits = false;
    tg_slot_enqueue(&s->worker->sending[what], s);
}

static void put_on(tg_fleet_slot *s, tg_fleet_worker *w) {
    s->worker = w;
    s->mate_before = NULL;
    s->mate = w->slots;
    if (s->mate) s->mate->mate_before = s;
    w->slots = s;
    w->load++;
}

static void take_off(tg_fleet *f, tg_fleet_slot *s) {
    tg_fleet_worker *w = s->worker;
    if (!w) return;
    if (s->mate) s->mate->mate_before = s->mate_before;
    if (s->mate_before)
        s->mate_before->mate = s->mate;
    else
        w->slots = s->mate;
    s->mate = s->mate_before = NULL;
    s->worker = NULL;
    w->load--;
    if (s->stage >= TG_STAGE_OPEN) f->stats.slots_open--;
}

static void place(tg_fleet *f, tg_fleet_slot *s) {
    tg_fleet_worker *w = least_loaded(f);
    if (!w) {
        tg_slot_enqueue(&f->unplaced, s);
        return;
    }
    put_on(s, w);
    s->stage = TG_STAGE_OPENING;
    want(s, TG_SEND_OPEN);
}

void tg_fleet_place_waiting(tg_fleet *f) {
    while (f->unplaced.first && least_loaded(f)) tg_fleet_advance(f, f->unplaced.first);
}

/* ---- losing and rebuilding ------------------------------------------------------------------ */

void tg_fleet_slot_leave(tg_fleet *f, tg_fleet_slot *s) {
    take_off(f, s);
    s->stage = TG_STAGE_UNPLACED;
    s->send = TG_SEND_NOTHING;
    s->waits = false;
    s->call.sent = false;
    if (s->live && !s->rebuild) s->lost_ns = tg_clock_ns();
    s->rebuild = s->live;
    tg_fleet_recount(f, s);
    tg_slot_enqueue(&f->unplaced, s);
}

void tg_fleet_drained(tg_fleet *f, tg_fleet_worker *w) {
    for (tg_fleet_slot *s = w->slots, *next; s; s = next) {
        next = s->mate;
        if (!s->waits) tg_fleet_slot_leave(f, s);
    }
    tg_fleet_place_waiting(f);
}

void tg_fleet_detached(tg_fleet *f, tg_fleet_worker *w) {
    w->detached = true;
    for (tg_fleet_slot *s = w->slots, *next; s; s = next) {
        next = s->mate;
        if (!least_loaded(f)) break;
        tg_fleet_slot_leave(f, s);
        tg_fleet_advance(f, s);
    }
}

void tg_fleet_resumed(tg_fleet *f, tg_fleet_worker *w) {
    w->detached = false;
    w->unanswered = 0;
    for (tg_fleet_slot *s = w->slots, *next; s; s = next) {
        next = s->mate;
        s->waits = false; /* what was asked is answered to nobody: ask again */
        s->call.sent = false;
        tg_fleet_advance(f, s);
    }
    tg_fleet_place_waiting(f);
}

/* ---- one slot, one step --------------------------------------------------------------------- */

static void advance_open(tg_fleet *f, tg_fleet_slot *s) {
    const tg_fleet_call *c = &s->call;
    if (s->worker->draining && !s->waits) {
        tg_fleet_slot_leave(f, s);
        place(f, s);
    } else if (c->kind == TG_CALL_STEP && s->aborted && c->episode == s->reset.episode) {
        tg_fleet_fail_call(f, s, TG_CODE_EPISODE_ABORTED, s->why);
    } else if (s->rebuild && c->kind != TG_CALL_RESET) {
        s->stage = TG_STAGE_RESTORING;
        want(s, TG_SEND_RESTORE);
    } else if (c->kind == TG_CALL_RESET && !c->sent) {
        want(s, TG_SEND_RESET);
    } else if (c->kind == TG_CALL_STEP && !c->sent) {
        want(s, TG_SEND_STEP);
    }
}

void tg_fleet_advance(tg_fleet *f, tg_fleet_slot *s) {
    tg_slot_dequeue(s);
    s->send = TG_SEND_NOTHING;
    switch (s->stage) {
    case TG_STAGE_UNPLACED: place(f, s); break;
    case TG_STAGE_OPENING:
        if (!s->waits) want(s, TG_SEND_OPEN);
        break;
    case TG_STAGE_OPEN: advance_open(f, s); break;
    case TG_STAGE_RESTORING:
        if (!s->waits) want(s, TG_SEND_RESTORE);
        break;
    }
}
