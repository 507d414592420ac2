/* A client of one textgen-env, for the integration tests: env-client [--listen] ADDRESS SCENARIO [ARGS…]
 *
 *     episodes N SEED K    N episodes on 4 slots with keyed tokens in runs of K; one line for each
 *     identity             replays, conflicts, gaps and stale steps; prints "ok" lines
 *     questions            samples, metrics, scores
 *     garbage              raw frames that are not the protocol, beside a good client
 *     stay                 prints "connected", then the reason when the session ends
 *     hold                 two steps of an episode, prints the session and its token, waits to be killed
 *     resume SESSION TOKEN takes that session over and ends the episode; prints its line
 *     restore              the same episode without interruption, and rebuilt from its log; prints its line
 *     told                 what slots hold whose episodes run or have ended, were begun or put back; prints it
 *
 * Exit 0 when the scenario went as it should. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "proto/codec.h"
#include "tests/support/env_client.h"
#include "tests/support/msg.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum { SLOTS = 4 };

static int fail(env_client *c, const char *what) {
    fprintf(stderr, "env-client: %s\n", what);
    c->failures++;
    return 1;
}

static void expect(env_client *c, bool ok, const char *what) {
    printf("%s %s\n", ok ? "ok" : "NOT OK", what);
    if (!ok) c->failures++;
}

/* ---- scenarios ----------------------------------------------------------------------------- */

/* Token i of an episode, the same for every run of this scenario. */
static int32_t token_at(uint64_t seed, uint64_t episode, uint32_t i, uint32_t vocab) {
    tg_rng r = tg_rng_at(seed, TG_RNG_TEST, episode, i);
    return (int32_t)tg_rng_below(&r, vocab);
}

static bool run_episode(env_client *c, uint64_t episode, uint64_t seed, uint32_t k,
                        uint32_t vocab) {
    uint32_t slot = 10 + (uint32_t)(episode % SLOTS);
    tg_reset_item item = {.slot = slot, .episode = episode, .seed = seed, .split = TG_SPLIT_TRAIN};
    tg_reset_reply *r = env_client_reset(c, &item, 1);
    if (!r || r->n != 1 || r->items[0].code != TG_CODE_OK) {
        tg_msg_free(r);
        return false;
    }
    uint64_t sample = r->items[0].sample, digest = 0;
    size_t n_prompt = r->items[0].n_prompt;
    tg_msg_free(r);
    uint32_t at = 0;
    double sum = 0;
    for (bool done = false; !done;) {
        int32_t tokens[64];
        for (uint32_t i = 0; i < k; i++) tokens[i] = token_at(seed, episode, at + i, vocab);
        tg_step_item s = {slot, episode, at, tokens, k};
        tg_step_reply *reply = env_client_step(c, &s, 1);
        if (!reply || reply->n != 1 || reply->items[0].code != TG_CODE_OK) {
            tg_msg_free(reply);
            return false;
        }
        const tg_step_result *x = &reply->items[0];
        for (uint32_t i = 0; i < x->n_applied; i++) sum += x->rewards[i];
        at += x->n_applied;
        digest = x->state_digest;
        done = x->terminated || x->truncated;
        if (done)
            printf("episode %" PRIu64 " sample %" PRIu64
                   " prompt %zu tokens %u %s reward %.17g digest %016" PRIx64 "\n",
                   episode, sample, n_prompt, at, x->terminated ? "terminated" : "truncated", sum,
                   digest);
        tg_msg_free(reply);
    }
    return true;
}

static int episodes(env_client *c, int argc, char **argv) {
    uint64_t n = argc > 0 ? strtoull(argv[0], NULL, 10) : 10,
             seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint32_t k = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    uint32_t vocab = tg_session_spec(c->session)->vocab_size;
    if (k < 1 || k > 64 || !env_client_open_slots(c, SLOTS)) return fail(c, "cannot open slots");
    for (uint64_t e = 0; e < n; e++)
        if (!run_episode(c, e, seed, k, vocab)) return fail(c, "an episode failed");
    return 0;
}

static tg_code step_code(env_client *c, uint32_t slot, uint64_t episode, uint32_t at, int32_t token,
                         bool *replayed) {
    tg_step_item item = {slot, episode, at, &token, 1};
    tg_step_reply *r = env_client_step(c, &item, 1);
    tg_code code = r && r->n == 1 ? r->items[0].code : TG_CODE_INTERNAL;
    if (replayed) *replayed = r && r->n == 1 && r->items[0].replayed;
    tg_msg_free(r);
    return code;
}

static int identity(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    bool replayed = false;
    expect(c, step_code(c, 10, 0, 0, 1, NULL) == TG_CODE_NOT_FOUND, "a slot that is not open");
    if (!env_client_open_slots(c, SLOTS) || !env_client_open_slots(c, SLOTS))
        return fail(c, "cannot open slots twice");
    expect(c, step_code(c, 10, 0, 0, 1, NULL) == TG_CODE_FAILED_STATE, "step before reset");
    tg_reset_item items[] = {{.slot = 10, .episode = 3, .split = TG_SPLIT_TRAIN},
                             {.slot = 10, .episode = 4, .split = TG_SPLIT_TRAIN},
                             {.slot = 99, .episode = 3, .split = TG_SPLIT_TRAIN}};
    tg_reset_reply *r = env_client_reset(c, items, 3);
    expect(c, r && r->n == 3 && r->items[0].code == TG_CODE_OK, "reset");
    expect(c, r && r->items[1].code == TG_CODE_INVALID_ARGUMENT, "a slot twice in a batch");
    expect(c, r && r->items[2].code == TG_CODE_NOT_FOUND, "an unknown slot in a batch");
    tg_msg_free(r);
    expect(c, step_code(c, 10, 3, 0, 7, &replayed) == TG_CODE_OK && !replayed, "step");
    expect(c, step_code(c, 10, 3, 0, 7, &replayed) == TG_CODE_OK && replayed,
           "the same step again");
    expect(c, step_code(c, 10, 3, 0, 8, NULL) == TG_CODE_CONFLICT,
           "the same step with another token");
    expect(c, step_code(c, 10, 3, 5, 8, NULL) == TG_CODE_GAP, "a step too far");
    expect(c, step_code(c, 10, 2, 1, 8, NULL) == TG_CODE_STALE, "a step of another episode");
    expect(c, step_code(c, 10, 3, 1, 1 << 30, NULL) == TG_CODE_INVALID_ARGUMENT,
           "a token out of range");
    expect(c, step_code(c, 10, 3, 1, 8, NULL) == TG_CODE_OK, "the next step");
    expect(c, step_code(c, 10, 3, 0, 7, NULL) == TG_CODE_STALE, "an old step");
    return 0;
}

static int questions(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    tg_sample_range range = {TG_SPLIT_VAL, 1, 3};
    tg_samples *s = env_client_ask(c, TG_MSG_SAMPLE_RANGE, &range, TG_MSG_SAMPLES);
    expect(c, s && s->n == 3 && s->items[0].index == 1 && s->items[0].n_prompt > 0, "samples");
    tg_msg_free(s);
    tg_generation g[] = {{.sample = 0, .text = "1 2 3 2020-01-02"}, {.sample = 1, .text = "no"}};
    tg_metric_request metric = {.split = TG_SPLIT_VAL, .items = g, .n = 2, .want_text = true};
    tg_metric_reply *m = env_client_ask(c, TG_MSG_METRIC, &metric, TG_MSG_METRIC_REPLY);
    expect(c, m && m->n_values >= 1 && m->values[0].n_samples == 2 && m->n_texts == 2, "metrics");
    for (size_t i = 0; m && i < m->n_values; i++)
        printf("%s %.17g\n", m->values[i].key, m->values[i].corpus);
    tg_msg_free(m);
    tg_score_item item = {.id = 5, .prompt = "", .completion = "1 2 3 4", .meta_json = ""};
    tg_score_request score = {.fn = "", .items = &item, .n = 1};
    tg_score_reply *r = env_client_ask(c, TG_MSG_SCORE, &score, TG_MSG_SCORE_REPLY);
    expect(c, r && r->n == 1 && r->items[0].id == 5 && r->items[0].status == TG_REWARD_OK,
           "scores");
    tg_msg_free(r);
    score.fn = "no_such_reward";
    expect(c, !env_client_ask(c, TG_MSG_SCORE, &score, TG_MSG_SCORE_REPLY),
           "an unknown reward is refused");
    range.first = 1 << 30;
    s = env_client_ask(c, TG_MSG_SAMPLE_RANGE, &range, TG_MSG_SAMPLES);
    expect(c, s && s->n == 0, "samples behind the end");
    tg_msg_free(s);
    return 0;
}

/* Raw sockets beside the good client: noise, cut frames, frames with one bit changed, many parts. */
static void send_garbage(void *socket, tg_rng *rng) {
    tg_buf frame = {0};
    tg_error err = {0};
    tg_hello hello = {.proto_major = TG_PROTO_MAJOR, .role = TG_ROLE_CLIENT, .software = "garbage"};
    tg_frame head = {.type = TG_MSG_HELLO};
    TG_ASSERT(tg_frame_encode(&head, &hello, &frame, &err) == TG_OK);
    switch (tg_rng_below(rng, 4)) {
    case 0:
        for (size_t i = 0; i < frame.len; i++) frame.data[i] = (char)tg_rng_u32(rng);
        break;
    case 1: frame.len = (size_t)tg_rng_below(rng, frame.len); break;
    case 2: frame.data[tg_rng_below(rng, frame.len)] ^= (char)(1u << tg_rng_below(rng, 8)); break;
    default: zmq_send(socket, "part", 4, ZMQ_SNDMORE | ZMQ_DONTWAIT); break;
    }
    zmq_send(socket, frame.data, frame.len, ZMQ_DONTWAIT);
    tg_buf_fini(&frame);
}

static int garbage(env_client *c, int argc, char **argv) {
    const char *address = argc > 0 ? argv[0] : "";
    void *context = zmq_ctx_new();
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    if (!env_client_open_slots(c, SLOTS)) return fail(c, "cannot open slots");
    tg_reset_item item = {.slot = 10, .episode = 1, .split = TG_SPLIT_TRAIN};
    tg_msg_free(env_client_reset(c, &item, 1));
    for (int peer = 0; peer < 10; peer++) {
        void *socket = zmq_socket(context, ZMQ_DEALER);
        int linger = 100;
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
        zmq_connect(socket, address);
        for (int i = 0; i < 100; i++) send_garbage(socket, &rng);
        usleep(20000);
        zmq_close(socket);
        if (peer == 4)
            expect(c, step_code(c, 10, 1, 0, 7, NULL) == TG_CODE_OK,
                   "a good step between the garbage");
    }
    expect(c, step_code(c, 10, 1, 1, 7, NULL) == TG_CODE_OK, "a good step behind the garbage");
    zmq_ctx_term(context);
    return 0;
}

static int stay(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    printf("connected\n");
    fflush(stdout);
    if (!env_client_wait_closed(c)) return fail(c, "the session did not end");
    printf("closed: %s\n", c->reason);
    return 0;
}

/* ---- coming back ---------------------------------------------------------------------------- */

typedef struct episode_log {
    int32_t tokens[64];
    double rewards[64];
    uint64_t sample, reset_digest, digest;
    uint32_t n;
    bool done;
} episode_log;

enum { EPISODE = 12, HELD = 2 };

static bool begin_logged(env_client *c, uint32_t slot, episode_log *log) {
    tg_reset_item item = {.slot = slot, .episode = EPISODE, .seed = 3, .split = TG_SPLIT_TRAIN};
    tg_reset_reply *r = env_client_reset(c, &item, 1);
    bool ok = r && r->n == 1 && r->items[0].code == TG_CODE_OK;
    *log = (episode_log){0};
    if (ok) log->sample = r->items[0].sample, log->reset_digest = r->items[0].state_digest;
    tg_msg_free(r);
    return ok;
}

static bool step_logged(env_client *c, uint32_t slot, episode_log *log) {
    uint32_t vocab = tg_session_spec(c->session)->vocab_size;
    int32_t token = token_at(3, EPISODE, log->n, vocab);
    tg_step_item item = {slot, EPISODE, log->n, &token, 1};
    tg_step_reply *r = env_client_step(c, &item, 1);
    bool ok = r && r->n == 1 && r->items[0].code == TG_CODE_OK;
    if (ok) {
        log->tokens[log->n] = token;
        log->rewards[log->n++] = r->items[0].rewards[0];
        log->digest = r->items[0].state_digest;
        log->done = r->items[0].terminated || r->items[0].truncated;
    }
    tg_msg_free(r);
    return ok;
}

static int finish_logged(env_client *c, uint32_t slot, episode_log *log) {
    while (!log->done && log->n < 64)
        if (!step_logged(c, slot, log)) return fail(c, "a step failed");
    double sum = 0;
    for (uint32_t i = 0; i < log->n; i++) sum += log->rewards[i];
    printf("sample %" PRIu64 " tokens %u reward %.17g digest %016" PRIx64 "\n", log->sample, log->n,
           sum, log->digest);
    return 0;
}

static int hold(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    episode_log log;
    if (!env_client_open_slots(c, SLOTS) || !begin_logged(c, 11, &log))
        return fail(c, "cannot begin");
    for (int i = 0; i < HELD; i++)
        if (!step_logged(c, 11, &log)) return fail(c, "a step failed");
    const uint8_t *token = tg_session_resume_token(c->session);
    printf("connected session %" PRIx64 " token ", tg_session_id(c->session));
    for (int i = 0; token && i < 16; i++) printf("%02x", token[i]);
    printf("\n");
    fflush(stdout);
    for (;;) uv_run(&c->loop, UV_RUN_ONCE);
}

/* c is an open client of its own session; a second one takes the other over. */
static int resume(env_client *c, int argc, char **argv) {
    env_client back;
    uint8_t token[16];
    if (argc < 3 || strlen(argv[2]) != 32) return fail(c, "resume ADDRESS SESSION TOKEN");
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;
        sscanf(argv[2] + 2 * i, "%2x", &byte);
        token[i] = (uint8_t)byte;
    }
    uint64_t session = strtoull(argv[1], NULL, 16);
    if (!env_client_resume(&back, argv[0], session, token)) return fail(c, "no session");
    episode_log log = {0};
    uint32_t slot = 11;
    tg_slot_list list = {&slot, 1};
    tg_snapshot_reply *s = env_client_ask(&back, TG_MSG_SNAPSHOT, &list, TG_MSG_SNAPSHOT_REPLY);
    bool same = tg_session_id(back.session) == session && tg_session_epoch(back.session) == 2;
    if (same && s && s->n == 1 && s->items[0].live && s->items[0].n_tokens == HELD) {
        log.sample = s->items[0].sample, log.n = HELD, log.digest = s->items[0].state_digest;
        memcpy(log.tokens, s->items[0].tokens, HELD * sizeof *log.tokens);
        memcpy(log.rewards, s->items[0].rewards, HELD * sizeof *log.rewards);
        finish_logged(&back, 11, &log);
    } else {
        fail(c, same ? "the slot does not hold its episode" : "another session");
    }
    tg_msg_free(s);
    c->failures += back.failures;
    env_client_close(&back);
    return 0;
}

static tg_code restore_code(env_client *c, uint32_t slot, const episode_log *log) {
    tg_restore_item item = {.slot = slot,
                            .episode = EPISODE,
                            .seed = 3,
                            .sample = log->sample,
                            .split = TG_SPLIT_TRAIN,
                            .tokens = log->tokens,
                            .rewards = log->rewards,
                            .n_tokens = log->n,
                            .reset_digest = log->reset_digest,
                            .state_digest = log->digest};
    tg_restore_batch batch = {&item, 1};
    tg_restore_reply *r = env_client_ask(c, TG_MSG_RESTORE, &batch, TG_MSG_RESTORE_REPLY);
    tg_code code = r && r->n == 1 ? r->items[0].code : TG_CODE_INTERNAL;
    tg_msg_free(r);
    return code;
}

static int restore(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    episode_log log, part;
    if (!env_client_open_slots(c, SLOTS) || !begin_logged(c, 10, &log))
        return fail(c, "cannot begin");
    for (int i = 0; i < HELD; i++)
        if (!step_logged(c, 10, &log)) return fail(c, "a step failed");
    part = log;
    if (restore_code(c, 12, &part) != TG_CODE_OK) return fail(c, "not restored");
    part.digest ^= 1;
    if (restore_code(c, 13, &part) != TG_CODE_EPISODE_ABORTED) return fail(c, "a wrong digest");
    part.digest ^= 1;
    finish_logged(c, 10, &log);
    finish_logged(c, 12, &part);
    return 0;
}

static bool print_slots(env_client *c, const uint32_t *slots, size_t n) {
    tg_slot_list list = {slots, n};
    tg_buf line = {0};
    tg_snapshot_reply *r = env_client_ask(c, TG_MSG_SNAPSHOT, &list, TG_MSG_SNAPSHOT_REPLY);
    if (r) tg_test_msg_print(TG_MSG_SNAPSHOT_REPLY, r, &line);
    if (r) printf("%s\n", line.data);
    tg_buf_fini(&line);
    tg_msg_free(r);
    return r;
}

/* Slot 10 runs, 11 has ended (and was stepped once more, which changes nothing); 12 and 13 are the same, put back. */
static int told(env_client *c, int argc, char **argv) {
    (void)argc, (void)argv;
    static const uint32_t slots[] = {10, 99, 11, 12, 13};
    episode_log running, over;
    bool ok = env_client_open_slots(c, SLOTS) && print_slots(c, NULL, 0) &&
              begin_logged(c, 10, &running) && begin_logged(c, 11, &over) &&
              print_slots(c, slots, 3);
    for (int i = 0; ok && i < HELD; i++) ok = step_logged(c, 10, &running);
    while (ok && !over.done && over.n < 64) ok = step_logged(c, 11, &over);
    if (!ok) return fail(c, "cannot play");
    if (step_code(c, 11, EPISODE, over.n, 1, NULL) != TG_CODE_FAILED_STATE)
        return fail(c, "a step after the end");
    if (restore_code(c, 12, &running) != TG_CODE_OK || restore_code(c, 13, &over) != TG_CODE_OK)
        return fail(c, "not restored");
    if (!print_slots(c, slots, TG_COUNT_OF(slots)) || !step_logged(c, 12, &running) ||
        !print_slots(c, NULL, 0))
        return fail(c, "cannot go on");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(env_client *c, int argc, char **argv);
} scenarios[] = {{"episodes", episodes}, {"identity", identity}, {"questions", questions},
                 {"garbage", garbage},   {"stay", stay},         {"hold", hold},
                 {"resume", resume},     {"restore", restore},   {"told", told}};

int main(int argc, char **argv) {
    bool listening = argc > 1 && !strcmp(argv[1], "--listen");
    argc -= listening, argv += listening;
    env_client c;
    size_t which = 0;
    while (argc > 2 && which < TG_COUNT_OF(scenarios) &&
           strcmp(scenarios[which].name, argv[2]) != 0)
        which++;
    if (argc < 3 || which == TG_COUNT_OF(scenarios)) {
        fprintf(stderr, "usage: env-client [--listen] ADDRESS "
                        "episodes|identity|questions|garbage|stay|hold|resume|restore [ARGS]\n");
        return 64;
    }
    if (!env_client_open(&c, argv[1], listening)) return 1;
    scenarios[which].run(&c, argc - 3, argv + 3);
    env_client_close(&c);
    return c.failures ? 1 : 0;
}
