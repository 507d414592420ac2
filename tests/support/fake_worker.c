#include "tests/support/fake_worker.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "proto/codec.h"
#include "proto/frame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { SLOTS = 256, MAX_TOKENS = 8, OLD = 4 };

typedef struct slot {
    bool open, reset, refused_once;
    tg_reset_item item;
    uint64_t sample, digest, reset_digest;
    int32_t tokens[MAX_TOKENS];
    int32_t prompt[8];
    uint32_t n_tokens;
    bool ended;
    /* reply cache */
    uint32_t last_step, last_n;
    double rewards[MAX_TOKENS];
} slot;

struct tg_fake_worker {
    tg_fake_opts opts;
    char address[256];
    pthread_t thread;
    atomic_int stop; /* 1: with Bye, 2: without */
    atomic_int steps, last_error;
    /* the thread's own */
    void *ctx, *sock;
    unsigned char peer[16];
    int peer_len;
    uint64_t session, hello_ms, beat_ms;
    bool stalled, dead;
    slot slots[SLOTS];
    tg_buf old[OLD]; /* replies sent before */
    unsigned n_old;
};

/* ---- sending -------------------------------------------------------------------------------- */

static void send_bytes(tg_fake_worker *w, const void *bytes, size_t len) {
    if (w->opts.listen) {
        if (w->peer_len == 0) return;
        zmq_send(w->sock, w->peer, (size_t)w->peer_len, ZMQ_SNDMORE);
    }
    zmq_send(w->sock, bytes, len, 0);
}

static void misbehave_before(tg_fake_worker *w) {
    if (w->opts.fault != TG_FAKE_GARBAGE) return;
    char noise[64];
    tg_rng r = tg_rng_at((uint64_t)atomic_load(&w->steps), TG_RNG_TEST, 1, 1);
    for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)tg_rng_u32(&r);
    send_bytes(w, noise, sizeof noise);
    memcpy(noise, "TXG1", 4);
    send_bytes(w, noise, 40);
    send_bytes(w, "", 0);
}

static void misbehave_after(tg_fake_worker *w, const tg_buf *b) {
    if (w->opts.fault != TG_FAKE_DUPLICATE) return;
    send_bytes(w, b->data, b->len);
    tg_buf *keep = &w->old[w->n_old++ % OLD];
    tg_buf_reset(keep);
    tg_buf_append(keep, b->data, b->len);
    for (unsigned i = 0; i < OLD; i++) {
        if (w->old[i].len) send_bytes(w, w->old[i].data, w->old[i].len);
    }
}

static void send_msg(tg_fake_worker *w, tg_msg_type type, uint64_t seq, const void *msg) {
    tg_buf b = {0};
    uint16_t flags = seq ? TG_FRAME_REPLY : 0;
    bool reply = type == TG_MSG_RESET_REPLY || type == TG_MSG_STEP_REPLY;
    if (tg_frame_encode(&(tg_frame){type, flags, w->session, seq}, msg, &b, NULL) != TG_OK) abort();
    if (reply) misbehave_before(w);
    send_bytes(w, b.data, b.len);
    if (reply) misbehave_after(w, &b);
    tg_buf_fini(&b);
}

static tg_env_spec spec_of(const tg_fake_worker *w) {
    return (tg_env_spec){.env_id = "fake",
                         .config_digest = w->opts.config_digest ? w->opts.config_digest : 1,
                         .tokenizer_digest =
                             w->opts.tokenizer_digest ? w->opts.tokenizer_digest : 1,
                         .vocab_size = 100,
                         .max_prompt_length = 8,
                         .max_episode_length = MAX_TOKENS,
                         .n_samples = {0, 1000, 100, 100},
                         .deterministic = !w->opts.not_deterministic,
                         .capacity = w->opts.capacity};
}

static void say_hello(tg_fake_worker *w) {
    tg_hello h = {.proto_major = TG_PROTO_MAJOR,
                  .heartbeat_ms = (uint32_t)w->opts.heartbeat_ms,
                  .role = TG_ROLE_WORKER,
                  .software = "fake",
                  .has_spec = true,
                  .spec = spec_of(w)};
    uint64_t id[2] = {(uint64_t)(uintptr_t)w, tg_clock_ns()};
    memcpy(h.peer_uuid, id, 16);
    w->hello_ms = tg_clock_ms();
    send_msg(w, TG_MSG_HELLO, 0, &h);
}

/* ---- the environment ------------------------------------------------------------------------ */

static bool slot_refuses(tg_fake_worker *w, slot *s) {
    if (w->opts.fault != TG_FAKE_OVERLOAD) return false;
    s->refused_once = !s->refused_once;
    return s->refused_once;
}

static void do_reset(tg_fake_worker *w, const tg_reset_item *x, tg_reset_result *r) {
    slot *s = &w->slots[x->slot % SLOTS];
    *r = (tg_reset_result){.slot = x->slot, .episode = x->episode};
    if (!s->open) {
        r->code = TG_CODE_NOT_FOUND;
        return;
    }
    if (slot_refuses(w, s)) {
        r->code = TG_CODE_OVERLOADED;
        return;
    }
    if (!(s->reset && s->item.episode == x->episode)) {
        bool open = s->open;
        bool refused = s->refused_once;
        *s = (slot){.open = open,
                    .reset = true,
                    .item = *x,
                    .refused_once = refused,
                    .last_step = UINT32_MAX};
        uint64_t key[2] = {x->seed, x->episode};
        s->sample = x->has_sample ? x->sample : tg_siphash(1, 2, key, sizeof key) % 1000;
        uint64_t state[3] = {x->seed, (uint64_t)x->split, s->sample};
        s->digest = s->reset_digest =
            tg_siphash(3, w->opts.fault == TG_FAKE_LIE ? 5 : 4, state, sizeof state);
    }
    for (size_t i = 0; i < 1 + s->sample % 7; i++) s->prompt[i] = (int32_t)((s->sample + i) % 100);
    r->prompt = s->prompt;
    r->n_prompt = 1 + s->sample % 7;
    r->sample = s->sample;
    r->state_digest = s->reset_digest;
    r->sample_id = "id";
}

static tg_stop stop_of(const slot *s) {
    return !s->ended                         ? TG_STOP_NONE
           : s->tokens[s->n_tokens - 1] == 0 ? TG_STOP_EOS
                                             : TG_STOP_LENGTH;
}

static void apply(slot *s, const tg_step_item *x) {
    s->last_step = s->n_tokens;
    s->last_n = 0;
    for (size_t i = 0; i < x->n_tokens && !s->ended; i++) {
        int32_t t = x->tokens[i];
        s->tokens[s->n_tokens++] = t;
        s->rewards[s->last_n++] = (double)t * 0.5 + (double)s->sample + (double)s->n_tokens;
        uint64_t link[2] = {(uint64_t)t, s->sample};
        s->digest = tg_siphash(s->digest, 7, link, sizeof link);
        s->ended = t == 0 || s->n_tokens == MAX_TOKENS;
    }
}

static void do_step(tg_fake_worker *w, const tg_step_item *x, tg_step_result *r) {
    slot *s = &w->slots[x->slot % SLOTS];
    *r = (tg_step_result){.slot = x->slot, .episode = x->episode, .step = x->step};
    if (!s->open || !s->reset) {
        r->code = TG_CODE_FAILED_STATE;
        return;
    }
    if (slot_refuses(w, s)) {
        r->code = TG_CODE_OVERLOADED;
        return;
    }
    if (s->item.episode != x->episode) {
        r->code = TG_CODE_STALE;
        return;
    }
    if (x->step == s->n_tokens && !s->ended) {
        apply(s, x);
    } else if (x->step == s->last_step) {
        r->replayed = true;
    } else {
        r->code = x->step > s->n_tokens ? TG_CODE_GAP : TG_CODE_STALE;
        r->expected_step = s->n_tokens;
        return;
    }
    r->n_applied = s->last_n;
    r->rewards = s->rewards;
    r->reward_status = TG_REWARD_OK;
    r->state_digest = s->digest ^ (w->opts.fault == TG_FAKE_LIE_LATER);
    r->terminated = s->ended && s->tokens[s->n_tokens - 1] == 0;
    r->truncated = s->ended && !r->terminated;
    r->stop = stop_of(s);
    r->text = s->ended ? "done" : "";
}

static void do_restore(tg_fake_worker *w, const tg_restore_item *x, tg_restore_result *r) {
    slot *s = &w->slots[x->slot % SLOTS];
    *r = (tg_restore_result){.slot = x->slot, .episode = x->episode};
    tg_reset_item item = {.slot = x->slot,
                          .episode = x->episode,
                          .seed = x->seed,
                          .split = x->split,
                          .has_sample = true,
                          .sample = x->sample};
    tg_reset_result reset;
    s->reset = false;
    do_reset(w, &item, &reset);
    r->code = reset.code;
    if (r->code != TG_CODE_OK) return;
    tg_step_item step = {x->slot, x->episode, 0, x->tokens, x->n_tokens};
    apply(s, &step);
    s->last_step = UINT32_MAX; /* nothing to answer again */
    r->state_digest = s->digest ^ (w->opts.fault == TG_FAKE_LIE_LATER);
    if (r->state_digest != x->state_digest) {
        r->code = TG_CODE_EPISODE_ABORTED;
        s->reset = false; /* the slot is free again */
        return;
    }
    r->sample_id = reset.sample_id, r->prompt = reset.prompt, r->n_prompt = reset.n_prompt;
    r->stop = stop_of(s);
    if (x->n_tokens) r->reward_status = TG_REWARD_OK;
}

/* ---- requests ------------------------------------------------------------------------------- */

static void open_slots(tg_fake_worker *w, uint64_t seq, const tg_slot_list *list) {
    uint32_t opened[SLOTS];
    size_t n = 0, open = 0;
    for (int i = 0; i < SLOTS; i++) open += w->slots[i].open;
    for (size_t i = 0; i < list->n && n < SLOTS; i++) {
        slot *s = &w->slots[list->slots[i] % SLOTS];
        if (!s->open && w->opts.capacity && open >= w->opts.capacity) continue;
        open += !s->open;
        s->open = true;
        opened[n++] = list->slots[i];
    }
    send_msg(w, TG_MSG_SLOTS_OPENED, seq, &(tg_slot_list){opened, n});
}

static void reset_batch(tg_fake_worker *w, uint64_t seq, const tg_reset_batch *b) {
    tg_reset_result *r = calloc(b->n + 1, sizeof *r);
    for (size_t i = 0; i < b->n; i++) do_reset(w, &b->items[i], &r[b->n - 1 - i]); /* any order */
    send_msg(w, TG_MSG_RESET_REPLY, seq, &(tg_reset_reply){r, b->n});
    free(r);
}

/* Faults begin in the middle of a batch's work: it is applied, but never answered. */
static bool fault_now(tg_fake_worker *w, size_t n) {
    int steps = atomic_fetch_add(&w->steps, (int)n) + (int)n;
    if (steps <= w->opts.fault_after) return false;
    switch (w->opts.fault) {
    case TG_FAKE_DIE: w->dead = true; return true;
    case TG_FAKE_STALL: w->stalled = true; return true;
    case TG_FAKE_MUTE: return true;
    default: return false;
    }
}

static void step_batch(tg_fake_worker *w, uint64_t seq, const tg_step_batch *b) {
    tg_step_result *r = calloc(b->n + 1, sizeof *r);
    for (size_t i = 0; i < b->n; i++) do_step(w, &b->items[i], &r[b->n - 1 - i]);
    if (!fault_now(w, b->n)) send_msg(w, TG_MSG_STEP_REPLY, seq, &(tg_step_reply){r, b->n});
    free(r);
}

static void restore_batch(tg_fake_worker *w, uint64_t seq, const tg_restore_batch *b) {
    tg_restore_result *r = calloc(b->n + 1, sizeof *r);
    for (size_t i = 0; i < b->n; i++) do_restore(w, &b->items[i], &r[i]);
    send_msg(w, TG_MSG_RESTORE_REPLY, seq, &(tg_restore_reply){r, b->n});
    free(r);
}

static void samples(tg_fake_worker *w, uint64_t seq, const tg_sample_range *range) {
    tg_sample *s = calloc(range->n + 1, sizeof *s);
    for (uint32_t i = 0; i < range->n; i++)
        s[i] = (tg_sample){.index = range->first + i, .id = "s", .prompt_text = "p"};
    send_msg(w, TG_MSG_SAMPLES, seq, &(tg_samples){s, range->n});
    free(s);
}

static void metric(tg_fake_worker *w, uint64_t seq, const tg_metric_request *req) {
    if (fault_now(w, 1)) return;
    double total = 0;
    for (size_t i = 0; i < req->n; i++) total += (double)req->items[i].n_tokens;
    tg_metric_value v = {.key = "lexical/length", .has_corpus = true, .corpus = total};
    send_msg(w, TG_MSG_METRIC_REPLY, seq, &(tg_metric_reply){&v, 1, NULL, 0});
}

static void welcome_client(tg_fake_worker *w, uint64_t seq) {
    w->session = tg_clock_ns();
    tg_welcome welcome = {.heartbeat_ms = (uint32_t)w->opts.heartbeat_ms,
                          .session = w->session,
                          .software = "fake",
                          .has_spec = true,
                          .spec = spec_of(w)};
    send_msg(w, TG_MSG_WELCOME, seq, &welcome);
}

static void heard_error(tg_fake_worker *w, const tg_wire_error *e) {
    atomic_store(&w->last_error, (int)e->code);
    if (e->code != TG_CODE_FENCED || w->opts.listen) return;
    memset(w->slots, 0, sizeof w->slots); /* given up by the client: begin anew */
    w->session = 0;
    say_hello(w);
}

static void handle(tg_fake_worker *w, const tg_frame *head, const void *msg) {
    if (w->opts.fault == TG_FAKE_REFUSE &&
        (head->type == TG_MSG_RESET || head->type == TG_MSG_METRIC)) {
        send_msg(w, TG_MSG_ERROR, head->seq,
                 &(tg_wire_error){.code = TG_CODE_INTERNAL, .message = "no luck"});
        return;
    }
    switch (head->type) {
    case TG_MSG_HELLO: welcome_client(w, head->seq); break;
    case TG_MSG_WELCOME: w->session = ((const tg_welcome *)msg)->session; break;
    case TG_MSG_OPEN_SLOTS: open_slots(w, head->seq, msg); break;
    case TG_MSG_RESET: reset_batch(w, head->seq, msg); break;
    case TG_MSG_STEP: step_batch(w, head->seq, msg); break;
    case TG_MSG_RESTORE: restore_batch(w, head->seq, msg); break;
    case TG_MSG_SAMPLE_RANGE: samples(w, head->seq, msg); break;
    case TG_MSG_METRIC: metric(w, head->seq, msg); break;
    case TG_MSG_ERROR: heard_error(w, msg); break;
    default: break;
    }
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void receive(tg_fake_worker *w) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    if (zmq_msg_recv(&part, w->sock, 0) >= 0) {
        if (w->opts.listen && zmq_msg_more(&part)) {
            w->peer_len = (int)zmq_msg_size(&part);
            memcpy(w->peer, zmq_msg_data(&part), (size_t)w->peer_len);
            zmq_msg_recv(&part, w->sock, 0);
        }
        tg_frame head;
        void *msg = NULL;
        if (!w->stalled &&
            tg_frame_decode(zmq_msg_data(&part), zmq_msg_size(&part), &head, &msg, NULL) == TG_OK) {
            handle(w, &head, msg);
        }
        tg_msg_free(msg);
    }
    zmq_msg_close(&part);
}

static void *run(void *arg) {
    tg_fake_worker *w = arg;
    int zero = 0, wait = 5;
    w->ctx = zmq_ctx_new();
    w->sock = zmq_socket(w->ctx, w->opts.listen ? ZMQ_ROUTER : ZMQ_DEALER);
    zmq_setsockopt(w->sock, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(w->sock, ZMQ_RCVTIMEO, &wait, sizeof wait);
    if (w->opts.listen) {
        if (zmq_bind(w->sock, w->address) != 0) abort();
    } else {
        zmq_connect(w->sock, w->address);
        say_hello(w);
    }
    while (!atomic_load(&w->stop) && !w->dead) {
        receive(w);
        uint64_t now = tg_clock_ms();
        if (w->session && !w->stalled && now - w->beat_ms >= (uint64_t)w->opts.heartbeat_ms) {
            w->beat_ms = now;
            send_msg(w, TG_MSG_HEARTBEAT, 0, &(tg_heartbeat){0});
        }
        if (!w->opts.listen && !w->session && !w->stalled && now - w->hello_ms > 300) say_hello(w);
    }
    if (atomic_load(&w->stop) == 1 && !w->dead) {
        send_msg(w, TG_MSG_BYE, 0, &(tg_bye){"stopped"});
        int linger = 100;
        zmq_setsockopt(w->sock, ZMQ_LINGER, &linger, sizeof linger);
    }
    zmq_close(w->sock);
    zmq_ctx_term(w->ctx);
    return NULL;
}

tg_fake_worker *tg_fake_start(const tg_fake_opts *opts) {
    tg_fake_worker *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->opts = *opts;
    if (w->opts.heartbeat_ms == 0) w->opts.heartbeat_ms = 1000;
    strncpy(w->address, opts->address, sizeof w->address - 1);
    if (pthread_create(&w->thread, NULL, run, w) != 0) abort();
    return w;
}

void tg_fake_stop(tg_fake_worker **out, bool bye) {
    tg_fake_worker *w = *out;
    if (!w) return;
    atomic_store(&w->stop, bye ? 1 : 2);
    pthread_join(w->thread, NULL);
    for (int i = 0; i < OLD; i++) tg_buf_fini(&w->old[i]);
    free(w);
    *out = NULL;
}

int tg_fake_steps(const tg_fake_worker *w) {
    return atomic_load(&w->steps);
}

int tg_fake_last_error(const tg_fake_worker *w) {
    return atomic_load(&w->last_error);
}
