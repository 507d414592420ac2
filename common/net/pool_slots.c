/* A slot: on which worker it lives, how a lost episode comes back, what a reply means. I/O thread, mutex held.
 *
 * Invariant: a slot's log holds exactly the tokens some worker has acknowledged, and digest is the state after them. A call is
 * finished once: by the first reply with its key (slot, episode, step), by its deadline, or by the episode's abortion. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/pool_internal.h"
#include "proto/codec.h"

#include <stdio.h>
#include <string.h>

void tg_pool_slot_fini(tg_pool_slot *s) {
    tg_free(s->call.tokens);
    tg_free(s->log);
}

/* ---- placing -------------------------------------------------------------------------------- */

static tg_pool_worker *least_loaded(const tg_pool *p) {
    tg_pool_worker *best = NULL;
    for (tg_pool_worker *w = p->workers; w; w = w->next) {
        if (w->draining || (w->capacity && w->load >= w->capacity)) continue;
        if (!best || w->load < best->load) best = w;
    }
    return best;
}

static void unplace(tg_pool_slot *s) {
    if (s->worker) s->worker->load--;
    s->worker = NULL;
    s->stage = TG_STAGE_UNPLACED;
    s->send = TG_SEND_NOTHING;
    s->call.sent = false;
    s->rebuild = s->live;
}

static void place(tg_pool *p, tg_pool_slot *s) {
    tg_pool_worker *w = least_loaded(p);
    if (!w) return;
    s->worker = w;
    w->load++;
    s->stage = TG_STAGE_OPENING;
    s->send = TG_SEND_OPEN;
}

/* ---- losing and rebuilding ------------------------------------------------------------------ */

static void abort_episode(tg_pool *p, tg_pool_slot *s, const char *why) {
    snprintf(s->why, sizeof s->why, "episode %llu cannot be continued: %s",
             (unsigned long long)s->reset.episode, why);
    tg_log_warn("pool", "slot %u: %s", s->id, s->why);
    s->aborted = true;
    s->live = s->rebuild = false;
    if (s->stage == TG_STAGE_RE_RESET || s->stage == TG_STAGE_RE_STEP) {
        s->stage = TG_STAGE_OPEN;
        s->send = TG_SEND_NOTHING;
    }
    if (s->call.kind == TG_CALL_STEP) tg_pool_post_failure(p, s, TG_CODE_EPISODE_ABORTED, s->why);
}

void tg_pool_slot_lost(tg_pool *p, tg_pool_slot *s) {
    unplace(s);
    /* A prompt comes back for any environment; what tokens earned only if rewards are a function of them. */
    if (s->rebuild && s->n_log > 0 && !p->first->spec.deterministic) {
        abort_episode(p, s, "its worker is gone and the environment is not deterministic");
    }
}

static void rebuilt(tg_pool *p, tg_pool_slot *s) {
    s->rebuild = false;
    s->stage = TG_STAGE_OPEN;
    p->stats.episodes_rebuilt++;
}

static void rebuild_reset_replied(tg_pool *p, tg_pool_slot *s, const tg_reset_result *r) {
    char why[TG_POOL_WHY];
    if (r->code != TG_CODE_OK) {
        snprintf(why, sizeof why, "its rebuilding failed: %s: %.160s", tg_code_name(r->code),
                 r->message);
        abort_episode(p, s, why);
    } else if (r->state_digest != s->reset_digest || r->sample != s->sample) {
        abort_episode(p, s, "another worker gives another prompt for it");
    } else if (s->n_log > 0) {
        s->stage = TG_STAGE_RE_STEP;
        s->send = TG_SEND_STEP;
    } else {
        rebuilt(p, s);
    }
}

static void rebuild_step_replied(tg_pool *p, tg_pool_slot *s, const tg_step_result *r) {
    char why[TG_POOL_WHY];
    if (r->n_applied == s->n_log && r->state_digest == s->digest) {
        rebuilt(p, s);
    } else if (r->code != TG_CODE_OK) {
        snprintf(why, sizeof why, "its rebuilding failed: %s: %.160s", tg_code_name(r->code),
                 r->message);
        abort_episode(p, s, why);
    } else {
        abort_episode(p, s, "another worker reaches another state with its tokens");
    }
}

/* ---- one slot, one step --------------------------------------------------------------------- */

static void pump_open(tg_pool *p, tg_pool_slot *s) {
    const tg_pool_call *c = &s->call;
    if (c->kind == TG_CALL_STEP && s->aborted && c->episode == s->reset.episode) {
        tg_pool_post_failure(p, s, TG_CODE_EPISODE_ABORTED, s->why);
    } else if (s->rebuild && c->kind != TG_CALL_RESET) {
        s->stage = TG_STAGE_RE_RESET;
        s->send = TG_SEND_RESET;
    } else if (c->kind != TG_CALL_NONE && !c->sent) {
        s->send = c->kind == TG_CALL_RESET ? TG_SEND_RESET : TG_SEND_STEP;
    }
}

void tg_pool_pump(tg_pool *p) {
    uint64_t now = tg_clock_ms();
    for (size_t i = 0; i < p->n_slots; i++) {
        tg_pool_slot *s = &p->slots[i];
        if (s->retry_ms > now || s->send != TG_SEND_NOTHING) continue;
        s->retry_ms = 0;
        if (s->stage == TG_STAGE_UNPLACED) place(p, s);
        if (s->stage == TG_STAGE_OPEN) pump_open(p, s);
    }
    tg_pool_flush(p);
}

/* ---- replies -------------------------------------------------------------------------------- */

void tg_pool_slots_opened(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_slot_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        if (list->slots[i] >= p->n_slots) continue;
        tg_pool_slot *s = &p->slots[list->slots[i]];
        if (s->worker == w && s->stage == TG_STAGE_OPENING) s->stage = TG_STAGE_OPEN;
    }
    for (size_t i = 0; i < p->n_slots; i++) { /* asked for, not given: the worker is full */
        tg_pool_slot *s = &p->slots[i];
        if (s->worker != w || s->stage != TG_STAGE_OPENING || s->seq != seq ||
            s->send != TG_SEND_NOTHING)
            continue;
        unplace(s);
        w->capacity = w->load ? w->load : 1;
        s->retry_ms = tg_clock_ms() + TG_POOL_RETRY_MS;
    }
    pthread_cond_broadcast(&p->changed);
}

/* The slot of a reply, if it lives on that worker and waits for something. */
static tg_pool_slot *slot_of(tg_pool *p, tg_pool_worker *w, uint32_t id) {
    tg_pool_slot *s = id < p->n_slots ? &p->slots[id] : NULL;
    return s && s->worker == w ? s : NULL;
}

/* The worker asks for patience; true if the request will be sent again. */
static bool retry_later(tg_pool_slot *s, tg_code code) {
    if (!tg_code_is_retryable(code)) return false;
    s->retry_ms = tg_clock_ms() + TG_POOL_RETRY_MS;
    if (s->stage == TG_STAGE_RE_STEP || s->stage == TG_STAGE_RE_RESET) {
        s->stage = TG_STAGE_OPEN; /* from the reset on; it is idempotent */
    } else {
        s->call.sent = false;
    }
    return true;
}

static void reset_acknowledged(tg_pool_slot *s, const tg_reset_result *r) {
    s->reset = s->call.reset;
    s->reset.has_sample = true; /* rebuilt with this very sample, however it was drawn */
    s->reset.sample = s->sample = r->sample;
    s->reset_digest = s->digest = r->state_digest;
    s->n_log = 0;
    s->live = true;
    s->rebuild = s->aborted = false;
}

static void handle_reset(tg_pool *p, tg_pool_worker *w, const tg_reset_result *r,
                         tg_pool_reply *reply) {
    tg_pool_slot *s = slot_of(p, w, r->slot);
    if (s && s->stage == TG_STAGE_RE_RESET && s->send == TG_SEND_NOTHING &&
        r->episode == s->reset.episode) {
        if (!retry_later(s, r->code)) rebuild_reset_replied(p, s, r);
    } else if (s && s->call.kind == TG_CALL_RESET && s->call.sent &&
               r->episode == s->call.reset.episode) {
        if (retry_later(s, r->code)) return;
        if (r->code == TG_CODE_OK) reset_acknowledged(s, r);
        tg_pool_post(p, &(tg_pool_event){.kind = TG_POOL_RESET, .reset = *r}, reply);
    } else {
        p->stats.replies_dropped++;
    }
}

static bool log_tokens(tg_pool_slot *s, const int32_t *tokens, size_t n) {
    if (s->n_log + n > s->cap_log) {
        size_t cap = 2 * (s->n_log + n);
        int32_t *grown = tg_realloc_array(s->log, cap, sizeof *grown);
        if (!grown) return false;
        s->log = grown;
        s->cap_log = cap;
    }
    memcpy(s->log + s->n_log, tokens, n * sizeof *tokens);
    s->n_log += n;
    return true;
}

static void step_acknowledged(tg_pool *p, tg_pool_slot *s, const tg_step_result *r) {
    if (!s->live || s->call.episode != s->reset.episode) return;
    if (r->n_applied == 0 || s->call.step != s->n_log) return;
    if (log_tokens(s, s->call.tokens, r->n_applied)) {
        s->digest = r->state_digest;
        if (r->terminated || r->truncated) s->live = false;
    } else {
        s->call.kind = TG_CALL_NONE; /* this call has its answer; the next one will not */
        abort_episode(p, s, "out of memory for its tokens");
        s->call.kind = TG_CALL_STEP;
    }
}

static void handle_step(tg_pool *p, tg_pool_worker *w, const tg_step_result *r,
                        tg_pool_reply *reply) {
    tg_pool_slot *s = slot_of(p, w, r->slot);
    if (s && s->stage == TG_STAGE_RE_STEP && s->send == TG_SEND_NOTHING && r->step == 0 &&
        r->episode == s->reset.episode) {
        if (!retry_later(s, r->code)) rebuild_step_replied(p, s, r);
    } else if (s && s->call.kind == TG_CALL_STEP && s->call.sent && r->episode == s->call.episode &&
               r->step == s->call.step && r->n_applied <= s->call.n_tokens) {
        if (retry_later(s, r->code)) return;
        step_acknowledged(p, s, r);
        tg_pool_post(p, &(tg_pool_event){.kind = TG_POOL_STEP, .step = *r}, reply);
    } else {
        p->stats.replies_dropped++;
    }
}

static tg_pool_reply *share(void *msg) {
    tg_pool_reply *r = tg_alloc(sizeof *r);
    if (!r) {
        tg_msg_free(msg); /* as if it had not come: the deadlines see to it */
        return NULL;
    }
    *r = (tg_pool_reply){1, msg};
    return r;
}

void tg_pool_reset_replied(tg_pool *p, tg_pool_worker *w, void *msg) {
    const tg_reset_reply *batch = msg;
    tg_pool_reply *reply = share(msg);
    if (!reply) return;
    for (size_t i = 0; i < batch->n; i++) handle_reset(p, w, &batch->items[i], reply);
    tg_pool_reply_unref(reply);
}

void tg_pool_step_replied(tg_pool *p, tg_pool_worker *w, void *msg) {
    const tg_step_reply *batch = msg;
    tg_pool_reply *reply = share(msg);
    if (!reply) return;
    for (size_t i = 0; i < batch->n; i++) handle_step(p, w, &batch->items[i], reply);
    tg_pool_reply_unref(reply);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void slot_failed(tg_pool *p, tg_pool_slot *s, const tg_wire_error *e) {
    char why[TG_POOL_WHY];
    snprintf(why, sizeof why, "%.200s", e->message);
    if (e->code == TG_CODE_DRAINING) {
        tg_pool_slot_lost(p, s); /* elsewhere */
    } else if (s->stage == TG_STAGE_OPENING) {
        s->worker->capacity = s->worker->load > 1 ? s->worker->load - 1 : 1; /* takes no more */
        s->retry_ms = tg_clock_ms() + TG_POOL_RETRY_MS;
        unplace(s);
    } else if (retry_later(s, e->code)) {
        return;
    } else if (s->stage == TG_STAGE_RE_RESET || s->stage == TG_STAGE_RE_STEP) {
        abort_episode(p, s, why);
    } else if (s->call.kind != TG_CALL_NONE && s->call.sent) {
        tg_pool_post_failure(p, s, e->code, why);
    }
}

bool tg_pool_slots_failed(tg_pool *p, tg_pool_worker *w, uint64_t seq, const tg_wire_error *e) {
    bool any = false;
    if (e->code == TG_CODE_DRAINING) w->draining = true;
    for (size_t i = 0; i < p->n_slots; i++) {
        tg_pool_slot *s = &p->slots[i];
        bool waits = s->stage != TG_STAGE_OPEN || s->call.sent;
        if (s->worker != w || s->seq != seq || s->send != TG_SEND_NOTHING || !waits) continue;
        any = true;
        slot_failed(p, s, e);
    }
    return any;
}

void tg_pool_check_deadlines(tg_pool *p, uint64_t now) {
    for (size_t i = 0; i < p->n_slots; i++) {
        tg_pool_slot *s = &p->slots[i];
        if (s->call.kind == TG_CALL_NONE || now < s->call.deadline_ms) continue;
        const char *why = !p->workers                     ? "no worker is connected"
                          : s->stage == TG_STAGE_UNPLACED ? "no worker has room for the slot"
                          : s->stage == TG_STAGE_OPENING
                              ? "the worker did not open the slot in time"
                          : s->stage != TG_STAGE_OPEN ? "the episode was not rebuilt in time"
                                                      : "the worker did not answer in time";
        tg_pool_post_failure(p, s, TG_CODE_DEADLINE_EXCEEDED, why);
    }
}
