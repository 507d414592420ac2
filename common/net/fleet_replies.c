/* What a reply means for its slot, and what it means that there is none.
 *
 * Invariant: a slot's log holds exactly the tokens some worker has acknowledged, with their rewards, and digest is the
 * state after them. A call is finished once: by the first reply with its key (slot, episode, step), by its deadline,
 * or by the episode's abortion. */
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/fleet_impl.h"

#include <stdio.h>

enum { MAX_DAMAGED = 5 };

/* Nothing is sent for the slot before that time. */
static void wait_a_while(tg_fleet *f, tg_fleet_slot *s) {
    uint64_t pause = (uint64_t)TG_FLEET_RETRY_MS << TG_MIN(s->tries, 5u);
    s->tries++;
    s->retry_ms = tg_clock_ms() + TG_MIN(pause, (uint64_t)TG_FLEET_RETRY_MAX_MS);
    tg_slot_enqueue(&f->later, s);
}

static void abort_episode(tg_fleet *f, tg_fleet_slot *s, const char *why) {
    snprintf(s->why, sizeof s->why, "episode %llu cannot be continued: %s",
             (unsigned long long)s->reset.episode, why);
    tg_log_warn("pool", "slot %u: %s", s->id, s->why);
    f->stats.episodes_aborted++;
    s->aborted = true;
    s->live = s->rebuild = s->ended = false;
    tg_fleet_recount(f, s);
    if (s->stage == TG_STAGE_RESTORING) {
        s->stage = TG_STAGE_OPEN;
        s->waits = false;
    }
    if (s->call.kind == TG_CALL_STEP) tg_fleet_fail_call(f, s, TG_CODE_EPISODE_ABORTED, s->why);
}

/* ---- replies -------------------------------------------------------------------------------- */

static void became_open(tg_fleet *f, tg_fleet_slot *s) {
    s->stage = TG_STAGE_OPEN;
    s->waits = false;
    f->stats.slots_open++;
}

void tg_fleet_slots_opened(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                           const tg_slot_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        tg_fleet_slot *s = tg_fleet_slot_of(f, list->slots[i]);
        if (!s || s->worker != w || s->stage != TG_STAGE_OPENING || !s->waits) continue;
        became_open(f, s);
        tg_fleet_advance(f, s);
    }
    for (tg_fleet_slot *s = w->slots, *next; s; s = next) { /* asked for, not given: it is full */
        next = s->mate;
        if (s->stage != TG_STAGE_OPENING || s->seq != seq || !s->waits) continue;
        tg_fleet_slot_leave(f, s);
        w->full_until_ms = tg_clock_ms() + TG_FLEET_FULL_MS;
        wait_a_while(f, s);
    }
    if (f->opts.ops->on_change) f->opts.ops->on_change(f->opts.arg);
}

/* The slot of an answer, if it lives on that worker. A refusal must answer the last request; a result may answer an
 * earlier one of the same call, which asked for the same. */
static tg_fleet_slot *awaited(tg_fleet *f, tg_fleet_worker *w, uint32_t id, tg_call_kind kind,
                              uint64_t seq, tg_code code) {
    tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    if (!s || s->worker != w || s->stage != TG_STAGE_OPEN || s->call.kind != kind) return NULL;
    if (code == TG_CODE_OK) return seq >= s->call.first_seq ? s : NULL;
    return s->waits && s->call.sent && seq == s->seq ? s : NULL;
}

/* The worker asks for patience, or to go elsewhere; true if the request will be sent again. */
static bool retry_later(tg_fleet *f, tg_fleet_slot *s, tg_code code) {
    if (!tg_code_is_retryable(code)) return false;
    s->waits = false;
    s->call.sent = false;
    if (code == TG_CODE_DRAINING) {
        tg_fleet_slot_leave(f, s);
        tg_fleet_advance(f, s);
    } else {
        wait_a_while(f, s);
    }
    return true;
}

static void reset_acknowledged(tg_fleet *f, tg_fleet_slot *s, const tg_reset_result *r) {
    s->reset = s->call.reset;
    s->reset.has_sample = true; /* rebuilt with this very sample, however it was drawn */
    s->reset.sample = r->sample;
    s->reset_digest = s->digest = r->state_digest;
    s->n_log = 0;
    s->live = true;
    s->rebuild = s->aborted = s->ended = false;
    tg_fleet_recount(f, s);
}

static void handle_reset(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_reset_result *r) {
    tg_fleet_slot *s = awaited(f, w, r->slot, TG_CALL_RESET, seq, r->code);
    if (!s || r->episode != s->call.reset.episode) {
        f->stats.replies_dropped++;
        return;
    }
    if (retry_later(f, s, r->code)) return;
    if (r->code == TG_CODE_OK) reset_acknowledged(f, s, r);
    tg_fleet_end_call(f, s);
    f->opts.ops->on_reset(f->opts.arg, r);
}

static void step_acknowledged(tg_fleet *f, tg_fleet_slot *s, const tg_step_result *r) {
    if (!s->live || s->call.episode != s->reset.episode) return;
    if (r->n_applied == 0 || s->call.step != s->n_log) return;
    const double *rewards = r->reward_status == TG_REWARD_OK ? r->rewards : NULL;
    if (tg_fleet_log_tokens(s, s->call.tokens, rewards, r->n_applied)) {
        s->digest = r->state_digest;
        f->stats.steps += r->n_applied;
        if (r->terminated || r->truncated) {
            s->live = false, s->ended = true;
            f->stats.episodes++;
        }
        tg_fleet_recount(f, s);
    } else {
        s->call.kind = TG_CALL_NONE; /* this call has its answer; the next one will not */
        abort_episode(f, s, "out of memory for its tokens");
        s->call.kind = TG_CALL_STEP;
    }
}

static void handle_step(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_step_result *r) {
    tg_fleet_slot *s = awaited(f, w, r->slot, TG_CALL_STEP, seq, r->code);
    if (!s || r->episode != s->call.episode || r->step != s->call.step ||
        r->n_applied > s->call.n_tokens) {
        f->stats.replies_dropped++;
        return;
    }
    if (retry_later(f, s, r->code)) return;
    step_acknowledged(f, s, r);
    tg_fleet_end_call(f, s);
    f->opts.ops->on_step(f->opts.arg, r);
}

/* The owner's own Restore (a client's that lost its broker) ends as its call; ours goes unnoticed. */
static void restored(tg_fleet *f, tg_fleet_slot *s, const tg_restore_result *r) {
    s->rebuild = false;
    s->stage = TG_STAGE_OPEN;
    s->waits = false;
    tg_fleet_rebuilt(f, s);
    if (s->call.kind != TG_CALL_RESTORE) return;
    tg_fleet_end_call(f, s);
    f->opts.ops->on_restore(f->opts.arg, r);
}

static void handle_restore(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                           const tg_restore_result *r) {
    tg_fleet_slot *s = tg_fleet_slot_of(f, r->slot);
    char why[TG_FLEET_WHY];
    if (!s || s->worker != w || s->stage != TG_STAGE_RESTORING || !s->waits || s->seq != seq) {
        f->stats.replies_dropped++;
        return;
    }
    if (retry_later(f, s, r->code)) return;
    if (r->code == TG_CODE_OK && r->state_digest == s->digest) {
        restored(f, s, r);
    } else {
        if (r->code == TG_CODE_OK)
            snprintf(why, sizeof why, "another worker reaches another state with its tokens");
        else
            snprintf(why, sizeof why, "its rebuilding failed: %s: %.160s", tg_code_name(r->code),
                     r->message);
        abort_episode(f, s, why);
        if (s->call.kind == TG_CALL_RESTORE) tg_fleet_fail_call(f, s, TG_CODE_EPISODE_ABORTED, why);
    }
    tg_fleet_advance(f, s);
}

void tg_fleet_reset_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                            const tg_reset_reply *batch) {
    for (size_t i = 0; i < batch->n; i++) handle_reset(f, w, seq, &batch->items[i]);
}

void tg_fleet_step_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                           const tg_step_reply *batch) {
    for (size_t i = 0; i < batch->n; i++) handle_step(f, w, seq, &batch->items[i]);
}

void tg_fleet_restore_replied(tg_fleet *f, tg_fleet_worker *w, uint64_t seq,
                              const tg_restore_reply *batch) {
    for (size_t i = 0; i < batch->n; i++) handle_restore(f, w, seq, &batch->items[i]);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void slot_failed(tg_fleet *f, tg_fleet_slot *s, const tg_wire_error *e) {
    char why[TG_FLEET_WHY];
    snprintf(why, sizeof why, "%.200s", e->message);
    if (e->code == TG_CODE_PROTOCOL &&
        s->tries < MAX_DAMAGED) { /* damaged on its way: send it again */
        s->waits = false;
        s->call.sent = false;
        wait_a_while(f, s);
    } else if (s->stage == TG_STAGE_OPENING && e->code != TG_CODE_DRAINING) {
        s->worker->full_until_ms = tg_clock_ms() + TG_FLEET_FULL_MS;
        tg_fleet_slot_leave(f, s);
        wait_a_while(f, s);
    } else if (retry_later(f, s, e->code)) {
        return;
    } else if (s->stage == TG_STAGE_RESTORING) {
        abort_episode(f, s, why);
        if (s->call.kind == TG_CALL_RESTORE) tg_fleet_fail_call(f, s, e->code, why);
        tg_fleet_advance(f, s);
    } else if (s->call.kind != TG_CALL_NONE && s->call.sent) {
        tg_fleet_fail_call(f, s, e->code, why);
    }
}

bool tg_fleet_slots_failed(tg_fleet *f, tg_fleet_worker *w, uint64_t seq, const tg_wire_error *e) {
    bool any = false;
    if (e->code == TG_CODE_DRAINING) w->draining = true;
    for (tg_fleet_slot *s = w->slots, *next; s; s = next) {
        next = s->mate;
        if (s->seq != seq || !s->waits) continue;
        any = true;
        slot_failed(f, s, e);
    }
    return any;
}

static const char *why_late(const tg_fleet *f, const tg_fleet_slot *s) {
    switch (s->stage) {
    case TG_STAGE_UNPLACED:
        return f->stats.workers ? "no worker has room for the slot" : "no worker is connected";
    case TG_STAGE_OPENING: return "the worker did not open the slot in time";
    case TG_STAGE_RESTORING: return "the episode was not rebuilt in time";
    case TG_STAGE_OPEN: break;
    }
    return "the worker did not answer in time";
}

void tg_fleet_check_deadlines(tg_fleet *f, uint64_t now) {
    if (now < f->next_deadline) return;
    f->next_deadline = UINT64_MAX;
    for (size_t i = 0; i < f->n_slots; i++) {
        tg_fleet_slot *s = f->slots[i];
        if (!s || s->call.kind == TG_CALL_NONE) continue;
        if (now >= s->call.deadline_ms)
            tg_fleet_fail_call(f, s, TG_CODE_DEADLINE_EXCEEDED, why_late(f, s));
        else
            f->next_deadline = TG_MIN(f->next_deadline, s->call.deadline_ms);
    }
}

void tg_fleet_resend(tg_fleet *f, uint64_t now) {
    if (now < f->next_resend) return;
    f->next_resend = now + TG_FLEET_RESEND_MS / 4;
    for (tg_fleet_worker *w = f->workers; w; w = w->next) {
        if (w->detached) continue;
        for (tg_fleet_slot *s = w->slots, *next; s; s = next) {
            next = s->mate;
            if (!s->waits || now - s->sent_ms < TG_FLEET_RESEND_MS) continue;
            f->stats.resent++;
            tg_fleet_answered(w, s->seq);
            s->waits = false;
            s->call.sent = false;
            tg_fleet_advance(f, s);
        }
    }
}
