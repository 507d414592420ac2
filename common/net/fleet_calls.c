/* What the owner asks of a slot: add, remove, reset, step, restore, cancel. */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/net/fleet_impl.h"
#include "proto/limits.h"

#include <math.h>
#include <string.h>

tg_fleet_slot *tg_fleet_slot_of(const tg_fleet *f, uint32_t id) {
    uint32_t place = TG_FLEET_PLACE(id);
    tg_fleet_slot *s = place < f->n_slots ? f->slots[place] : NULL;
    return s && s->id == id ? s : NULL;
}

void tg_fleet_slot_free(tg_fleet_slot *s) {
    if (!s) return;
    tg_free(s->call.tokens);
    tg_free(s->log);
    tg_free(s->rewards);
    tg_free(s);
}

/* ---- slots come and go ---------------------------------------------------------------------- */

static tg_status more_places(tg_fleet *f, tg_error *err) {
    size_t cap = f->cap_slots ? 2 * f->cap_slots : 64;
    tg_fleet_slot **slots = tg_realloc_array(f->slots, cap, sizeof *slots);
    if (slots) f->slots = slots;
    uint16_t *uses = slots ? tg_realloc_array(f->uses, cap, sizeof *uses) : NULL;
    if (!uses) return tg_fail_nomem(err, cap * sizeof *slots);
    memset(uses + f->cap_slots, 0, (cap - f->cap_slots) * sizeof *uses);
    f->uses = uses;
    f->cap_slots = cap;
    return TG_OK;
}

tg_status tg_fleet_add_slot(tg_fleet *f, uint32_t *id, tg_error *err) {
    size_t at = f->first_free;
    while (at < f->n_slots && f->slots[at]) at++;
    if (at >= TG_FLEET_PLACES)
        return tg_fail(err, TG_BUSY, "all %d slots are in use", TG_FLEET_PLACES);
    if (at == f->cap_slots && more_places(f, err) != TG_OK) return TG_NOMEM;
    tg_fleet_slot *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->id = *id = (uint32_t)f->uses[at] * TG_FLEET_PLACES + (uint32_t)at;
    f->slots[at] = s;
    if (at == f->n_slots) f->n_slots++;
    f->first_free = at + 1;
    f->stats.slots++;
    f->stats.in_state[s->counted]++;
    tg_fleet_advance(f, s);
    return TG_OK;
}

/* The worker may give the room to others. Not heard: it keeps the slot until the session ends, or opens it again. */
static void tell_closed(tg_fleet *f, tg_fleet_slot *s) {
    if (!s->worker || s->stage == TG_STAGE_UNPLACED) return;
    tg_slot_list list = {&s->id, 1};
    tg_frame head = {.type = TG_MSG_CLOSE_SLOTS, .seq = ++f->seq};
    tg_status st = tg_session_send(s->worker->session, &head, &list, NULL);
    (void)st;
}

void tg_fleet_remove_slot(tg_fleet *f, uint32_t id) {
    tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    if (!s) return;
    tell_closed(f, s);
    if (s->call.kind != TG_CALL_NONE) tg_fleet_end_call(f, s);
    tg_fleet_slot_leave(f, s);
    tg_slot_dequeue(s);
    size_t place = TG_FLEET_PLACE(id);
    f->slots[place] = NULL;
    f->uses[place]++;
    f->first_free = TG_MIN(f->first_free, place);
    f->stats.slots--;
    f->stats.in_state[s->counted]--;
    tg_fleet_slot_free(s);
}

bool tg_fleet_slot_is_open(const tg_fleet *f, uint32_t id) {
    const tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    return s && s->stage >= TG_STAGE_OPEN;
}

tg_fleet_log_view tg_fleet_slot_log(const tg_fleet *f, uint32_t id) {
    const tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    if (!s) return (tg_fleet_log_view){0};
    return (tg_fleet_log_view){.tokens = s->log,
                               .rewards = s->rewards,
                               .n = s->n_log,
                               .digest = s->digest,
                               .reset = s->reset,
                               .live = s->live,
                               .aborted = s->aborted};
}

bool tg_fleet_slot_is_busy(const tg_fleet *f, uint32_t id) {
    const tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    return s && s->call.kind != TG_CALL_NONE;
}

/* ---- the log -------------------------------------------------------------------------------- */

static bool grow_log(tg_fleet_slot *s, size_t n) {
    if (n <= s->cap_log) return true;
    size_t cap = TG_MAX(TG_MAX(2 * s->cap_log, n), 16);
    int32_t *log = tg_realloc_array(s->log, cap, sizeof *log);
    if (log) s->log = log;
    double *rewards = log ? tg_realloc_array(s->rewards, cap, sizeof *rewards) : NULL;
    if (rewards) s->rewards = rewards;
    if (!log || !rewards) return false;
    s->cap_log = cap;
    return true;
}

bool tg_fleet_log_tokens(tg_fleet_slot *s, const int32_t *tokens, const double *rewards, size_t n) {
    if (!n) return true; /* nothing may lie nowhere, and memcpy must not be told so */
    if (!grow_log(s, s->n_log + n)) return false;
    memcpy(s->log + s->n_log, tokens, n * sizeof *tokens);
    for (size_t i = 0; i < n; i++) s->rewards[s->n_log + i] = rewards ? rewards[i] : (double)NAN;
    s->n_log += n;
    return true;
}

/* ---- calls ---------------------------------------------------------------------------------- */

static tg_status free_slot(tg_fleet *f, uint32_t id, tg_fleet_slot **out, tg_error *err) {
    tg_fleet_slot *s = *out = tg_fleet_slot_of(f, id);
    if (!s) return tg_fail(err, TG_USAGE, "slot %u is not open (%zu are)", id, f->stats.slots);
    if (s->call.kind != TG_CALL_NONE)
        return tg_fail(err, TG_USAGE, "slot %u has a call under way", id);
    return TG_OK;
}

static void begin(tg_fleet *f, tg_fleet_slot *s, tg_call_kind kind, uint64_t deadline_ms) {
    s->call.kind = kind;
    s->call.sent = false;
    s->call.first_seq = f->seq + 1;
    s->call.deadline_ms = deadline_ms;
    f->next_deadline = TG_MIN(f->next_deadline, deadline_ms);
    f->stats.calls++;
    if (s->stage == TG_STAGE_OPEN && s->queue != &f->later) tg_fleet_advance(f, s);
}

tg_status tg_fleet_reset(tg_fleet *f, const tg_reset_item *item, bool want_text,
                         uint64_t deadline_ms, tg_error *err) {
    tg_fleet_slot *s;
    tg_status st = free_slot(f, item->slot, &s, err);
    if (st != TG_OK) return st;
    s->call.reset = *item;
    s->call.want_text = want_text;
    s->live = s->rebuild = s->ended = false; /* whoever resets has done with the old episode */
    tg_fleet_recount(f, s);
    begin(f, s, TG_CALL_RESET, deadline_ms);
    return TG_OK;
}

static tg_status copy_tokens(tg_fleet_call *c, const int32_t *tokens, size_t n, tg_error *err) {
    if (n > c->cap_tokens) {
        int32_t *grown = tg_realloc_array(c->tokens, n, sizeof *grown);
        if (!grown) return tg_fail_nomem(err, n * sizeof *grown);
        c->tokens = grown;
        c->cap_tokens = n;
    }
    memcpy(c->tokens, tokens, n * sizeof *tokens);
    c->n_tokens = n;
    return TG_OK;
}

tg_status tg_fleet_step(tg_fleet *f, const tg_step_item *item, bool want_text, uint64_t deadline_ms,
                        tg_error *err) {
    tg_fleet_slot *s;
    tg_status st = free_slot(f, item->slot, &s, err);
    if (st != TG_OK) return st;
    if (item->n_tokens == 0 || item->n_tokens > TG_LIMIT_TOKENS) {
        return tg_fail(err, TG_USAGE, "slot %u: a step has 1 to %d tokens, not %zu", item->slot,
                       TG_LIMIT_TOKENS, item->n_tokens);
    }
    st = copy_tokens(&s->call, item->tokens, item->n_tokens, err);
    if (st != TG_OK) return st;
    s->call.episode = item->episode;
    s->call.step = item->step;
    s->call.want_text = want_text;
    begin(f, s, TG_CALL_STEP, deadline_ms);
    return TG_OK;
}

/* As if the episode had been lived here and its worker were lost. */
tg_status tg_fleet_restore(tg_fleet *f, const tg_restore_item *item, uint64_t deadline_ms,
                           tg_error *err) {
    tg_fleet_slot *s;
    tg_status st = free_slot(f, item->slot, &s, err);
    if (st != TG_OK) return st;
    s->n_log = 0;
    if (!tg_fleet_log_tokens(s, item->tokens, item->rewards, item->n_tokens))
        return tg_fail_nomem(err, item->n_tokens * sizeof *s->log);
    s->reset = (tg_reset_item){.slot = item->slot,
                               .episode = item->episode,
                               .seed = item->seed,
                               .split = item->split,
                               .has_sample = true,
                               .sample = item->sample};
    s->reset_digest = item->reset_digest;
    s->digest = item->state_digest;
    s->live = s->rebuild = true;
    s->aborted = s->ended = false;
    s->lost_ns = tg_clock_ns();
    tg_fleet_recount(f, s);
    begin(f, s, TG_CALL_RESTORE, deadline_ms);
    return TG_OK;
}

void tg_fleet_end_call(tg_fleet *f, tg_fleet_slot *s) {
    s->call.kind = TG_CALL_NONE;
    s->call.sent = false;
    s->tries = 0;
    if (s->stage == TG_STAGE_OPEN) { /* a request not yet sent dies with its call */
        s->waits = false;
        s->send = TG_SEND_NOTHING;
        tg_slot_dequeue(s);
    }
    f->stats.calls--;
}

void tg_fleet_fail_call(tg_fleet *f, tg_fleet_slot *s, tg_code code, const char *why) {
    tg_fleet_call c = s->call;
    const tg_fleet_ops *ops = f->opts.ops;
    tg_fleet_end_call(f, s);
    if (c.kind == TG_CALL_RESET) {
        tg_reset_result r = {.slot = s->id, .episode = c.reset.episode, .code = code};
        r.message = why, r.prompt_text = r.sample_id = "";
        ops->on_reset(f->opts.arg, &r);
    } else if (c.kind == TG_CALL_STEP) {
        tg_step_result r = {.slot = s->id, .episode = c.episode, .step = c.step, .code = code};
        r.message = why, r.text = "", r.stop = TG_STOP_ABORTED;
        ops->on_step(f->opts.arg, &r);
    } else {
        tg_restore_result r = {.slot = s->id, .episode = s->reset.episode, .code = code};
        r.message = why, r.sample_id = "";
        ops->on_restore(f->opts.arg, &r);
    }
}

void tg_fleet_cancel(tg_fleet *f, uint32_t id) {
    tg_fleet_slot *s = tg_fleet_slot_of(f, id);
    if (!s || s->call.kind == TG_CALL_NONE) return;
    if (s->waits && s->worker) {
        tg_slot_list list = {&s->id, 1};
        tg_frame head = {.type = TG_MSG_CANCEL, .seq = ++f->seq};
        tg_status st = tg_session_send(s->worker->session, &head, &list, NULL);
        (void)st; /* not heard: the late answer is dropped */
    }
    tg_fleet_fail_call(f, s, TG_CODE_FAILED_STATE, "cancelled");
}
