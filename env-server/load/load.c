/* One thread, one loop, a fleet for each session. */
#include "env-server/load/load.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/net/fleet.h"

#include <string.h>

enum { MAX_TOKENS = 4096, AT_ONCE = 50, AT_ONCE_MS = 2000 };

typedef struct load load;

typedef struct slot {
    uint64_t episode, begun_ns;
    uint32_t step;
    bool idle; /* open loop: waits for its turn */
} slot;

typedef struct session {
    load *load;
    tg_fleet *fleet;
    slot *slots; /* (slots) */
    uint32_t n_slots, next_idle;
} session;

struct load {
    tg_load_opts o;
    tg_load_result *r;
    uv_loop_t loop;
    tg_net *net;
    uv_timer_t timer;
    session *sessions; /* (o.sessions) */
    size_t n_sessions, next_session;
    bool measuring, over, failed;
    uint64_t start_ns, end_ns, next_ns; /* of the measured time; when the next step is due */
    uint64_t calls;
    int32_t tokens[MAX_TOKENS];
    tg_error error;
};

static void fail(load *l, const tg_error *why) {
    if (!l->failed) l->error = *why;
    l->failed = true;
    uv_stop(&l->loop);
}

/* ---- one slot ------------------------------------------------------------------------------- */

static uint64_t call_deadline(const load *l) {
    return tg_clock_ms() + (uint64_t)l->o.timeout_ms;
}

static void begin_episode(session *s, uint32_t id) {
    slot *x = &s->slots[id];
    x->episode++;
    x->step = 0;
    x->begun_ns = tg_clock_ns();
    tg_reset_item item = {
        .slot = id, .episode = x->episode, .seed = s->load->o.seed + id, .split = TG_SPLIT_TRAIN};
    tg_error err;
    if (tg_fleet_reset(s->fleet, &item, false, call_deadline(s->load), &err) != TG_OK)
        fail(s->load, &err);
}

static void begin_step(session *s, uint32_t id, uint64_t due_ns) {
    load *l = s->load;
    slot *x = &s->slots[id];
    const tg_env_spec *spec = tg_fleet_spec(s->fleet);
    tg_rng r =
        tg_rng_at(l->o.seed, TG_RNG_TEST, (uint64_t)id << 24 | (x->episode & 0xffffff), x->step);
    for (uint32_t i = 0; i < l->o.tokens; i++) {
        uint32_t t = (uint32_t)tg_rng_below(&r, spec->vocab_size);
        l->tokens[i] =
            (int32_t)(spec->has_eos && t == spec->eos_id ? (t + 1) % spec->vocab_size : t);
    }
    x->begun_ns = due_ns;
    x->idle = false;
    tg_step_item item = {id, x->episode, x->step, l->tokens, l->o.tokens};
    tg_error err;
    if (tg_fleet_step(s->fleet, &item, false, call_deadline(l), &err) != TG_OK) fail(l, &err);
}

/* The slot has nothing under way. */
static void go_on(session *s, uint32_t id) {
    load *l = s->load;
    uint64_t now = tg_clock_ns();
    if (l->over) return;
    if (l->o.rate <= 0) {
        begin_step(s, id, now);
    } else if (l->next_ns <= now) { /* one is due already */
        begin_step(s, id, l->next_ns);
        l->next_ns += (uint64_t)(1e9 / l->o.rate);
    } else {
        s->slots[id].idle = true;
    }
}

static void count_error(load *l, tg_code code) {
    if (!l->measuring) return;
    l->r->errors++;
    if ((unsigned)code < TG_LOAD_CODES) l->r->codes[code]++;
}

static void on_reset(void *arg, const tg_reset_result *r) {
    session *s = arg;
    load *l = s->load;
    if (l->measuring) tg_histogram_add(&l->r->reset, tg_clock_ns() - s->slots[r->slot].begun_ns);
    if (r->code == TG_CODE_OK) {
        go_on(s, r->slot);
        return;
    }
    count_error(l, r->code);
    if (!l->over) begin_episode(s, r->slot);
}

static void on_step(void *arg, const tg_step_result *r) {
    session *s = arg;
    load *l = s->load;
    slot *x = &s->slots[r->slot];
    if (r->code != TG_CODE_OK) {
        count_error(l, r->code);
        if (!l->over) begin_episode(s, r->slot);
        return;
    }
    if (l->measuring) {
        tg_histogram_add(&l->r->step, tg_clock_ns() - x->begun_ns);
        l->r->steps++;
        l->r->tokens += r->n_applied;
        l->r->episodes += r->terminated || r->truncated;
    }
    x->step += r->n_applied;
    if (!(r->terminated || r->truncated))
        go_on(s, r->slot);
    else if (!l->over)
        begin_episode(s, r->slot);
}

static const tg_fleet_ops OPS = {.on_reset = on_reset, .on_step = on_step};

/* ---- open loop ------------------------------------------------------------------------------ */

static bool begin_any(load *l, uint64_t due_ns) {
    for (size_t k = 0; k < l->n_sessions; k++) {
        session *s = &l->sessions[l->next_session];
        l->next_session = (l->next_session + 1) % l->n_sessions;
        for (uint32_t i = 0; i < s->n_slots; i++) {
            uint32_t id = s->next_idle;
            s->next_idle = (s->next_idle + 1) % s->n_slots;
            if (!s->slots[id].idle) continue;
            begin_step(s, id, due_ns);
            return true;
        }
    }
    return false;
}

static void on_due(uv_timer_t *timer) {
    load *l = timer->data;
    uint64_t now = tg_clock_ns(), gap = (uint64_t)(1e9 / l->o.rate);
    while (l->next_ns <= now && !l->over) {
        if (!begin_any(l, l->next_ns)) break; /* it stays due */
        l->next_ns += gap;
    }
    for (size_t i = 0; i < l->n_sessions; i++) tg_fleet_kick(l->sessions[i].fleet);
}

/* ---- phases --------------------------------------------------------------------------------- */

static void run_until(load *l, uint64_t ms, bool (*done)(const load *l)) {
    uint64_t end = tg_clock_ms() + ms;
    while (!l->failed && tg_clock_ms() < end && !(done && done(l))) uv_run(&l->loop, UV_RUN_ONCE);
}

static void on_tick(uv_timer_t *timer) {
    (void)timer; /* so that the loop turns at least so often */
}

static bool all_open(const load *l) {
    for (size_t i = 0; i < l->n_sessions; i++) {
        tg_fleet_stats st;
        tg_fleet_get_stats(l->sessions[i].fleet, &st);
        if (st.slots_open < l->o.slots) return false;
    }
    return true;
}

static tg_status open_session(load *l, session *s, tg_error *err) {
    tg_fleet_opts o = {.connect = l->o.address,
                       .bind = l->o.bind,
                       .heartbeat_ms = l->o.heartbeat_ms,
                       .insecure = l->o.insecure,
                       .ops = &OPS,
                       .arg = s};
    s->load = l;
    s->n_slots = l->o.slots;
    s->slots = tg_alloc_array(l->o.slots, sizeof *s->slots);
    if (!s->slots) return tg_fail_nomem(err, l->o.slots * sizeof *s->slots);
    tg_status st = tg_fleet_open(&s->fleet, l->net, &l->loop, &o, err);
    l->n_sessions += st == TG_OK;
    for (uint32_t i = 0; i < l->o.slots && st == TG_OK; i++) {
        uint32_t id;
        st = tg_fleet_add_slot(s->fleet, &id, err);
    }
    return st;
}

static tg_status open_all(load *l, tg_error *err) {
    tg_status st = TG_OK;
    for (uint32_t i = 0; i < l->o.sessions && st == TG_OK; i++) {
        st = open_session(l, &l->sessions[i], err);
        if (i % AT_ONCE == AT_ONCE - 1) run_until(l, AT_ONCE_MS, all_open); /* not all at once */
    }
    if (st == TG_OK) run_until(l, (uint64_t)l->o.open_ms, all_open);
    if (st != TG_OK || l->failed || all_open(l)) return st;
    tg_fleet_stats fs;
    size_t open = 0;
    for (size_t i = 0; i < l->n_sessions; i++) {
        tg_fleet_get_stats(l->sessions[i].fleet, &fs);
        open += fs.slots_open;
    }
    return tg_fail(err, TG_UNAVAILABLE, "%zu of %zu slots were opened at %s within %d s", open,
                   (size_t)l->o.sessions * l->o.slots, l->o.address ? l->o.address : l->o.bind,
                   l->o.open_ms / 1000);
}

static void measure(load *l) {
    for (size_t i = 0; i < l->n_sessions; i++) {
        for (uint32_t k = 0; k < l->o.slots; k++) begin_episode(&l->sessions[i], k);
        tg_fleet_kick(l->sessions[i].fleet);
    }
    if (l->o.rate > 0) {
        l->next_ns = tg_clock_ns();
        uv_timer_start(&l->timer, on_due, 1, 1);
    }
    run_until(l, (uint64_t)(l->o.warmup * 1000), NULL);
    l->measuring = true;
    l->start_ns = tg_clock_ns();
    run_until(l, (uint64_t)(l->o.seconds * 1000), NULL);
    l->measuring = false;
    l->over = true;
    l->end_ns = tg_clock_ns();
    if (l->o.rate > 0 && l->next_ns < l->end_ns)
        l->r->missed = (uint64_t)((double)(l->end_ns - l->next_ns) * 1e-9 * l->o.rate);
}

static void gather(load *l) {
    tg_load_result *r = l->r;
    r->seconds = (double)(l->end_ns - l->start_ns) * 1e-9;
    r->sessions = l->n_sessions;
    for (size_t i = 0; i < l->n_sessions; i++) {
        tg_fleet_stats st;
        tg_fleet_get_stats(l->sessions[i].fleet, &st);
        r->workers_lost += st.workers_lost;
        r->rebuilt += st.episodes_rebuilt;
        r->slots += st.slots_open;
    }
}

static void close_all(load *l) {
    l->over = true;
    for (size_t i = 0; i < l->n_sessions; i++) tg_fleet_close(&l->sessions[i].fleet, "measured");
    uv_close((uv_handle_t *)&l->timer, NULL);
    while (uv_run(&l->loop, UV_RUN_DEFAULT)) continue;
    uv_loop_close(&l->loop);
    tg_net_destroy(&l->net);
    for (uint32_t i = 0; i < l->o.sessions; i++) tg_free(l->sessions[i].slots);
    tg_free(l->sessions);
}

static tg_status run(load *l, tg_error *err) {
    l->sessions = tg_alloc_array(l->o.sessions, sizeof *l->sessions);
    if (!l->sessions) return tg_fail_nomem(err, l->o.sessions * sizeof *l->sessions);
    if (uv_loop_init(&l->loop) != 0) return tg_fail(err, TG_UNAVAILABLE, "no event loop");
    uv_timer_init(&l->loop, &l->timer);
    l->timer.data = l;
    uv_timer_start(&l->timer, on_tick, 10, 10);
    tg_status st = tg_net_create(&l->net, err);
    if (st == TG_OK) st = tg_net_secure(l->net, l->o.security, err);
    if (st == TG_OK) st = open_all(l, err);
    if (st == TG_OK) measure(l);
    if (st == TG_OK) gather(l);
    close_all(l);
    if (l->failed && st == TG_OK) {
        *err = l->error;
        st = TG_UNAVAILABLE;
    }
    return st;
}

tg_status tg_load_run(const tg_load_opts *opts, tg_load_result *out, tg_error *err) {
    memset(out, 0, sizeof *out);
    load *l = tg_alloc(sizeof *l);
    if (!l) return tg_fail_nomem(err, sizeof *l);
    l->o = *opts;
    l->r = out;
    if (l->o.timeout_ms <= 0) l->o.timeout_ms = 60000;
    if (l->o.open_ms <= 0) l->o.open_ms = 60000;
    tg_status st = l->o.tokens > MAX_TOKENS
                       ? tg_fail(err, TG_USAGE, "a step has at most %d tokens here", MAX_TOKENS)
                       : run(l, err);
    tg_free(l);
    return st;
}
