/* See pool_play.h. Tokens are a function of (episode, step). */
#include "tests/support/pool_play.h"

#include "common/base/hash.h"
#include "tests/support/fake_worker.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>

static char address[128];

const char *tg_play_address(void) {
    static int n;
    snprintf(address, sizeof address, "ipc://%s/pool%d", tg_test_tmpdir(), n++);
    return address;
}

tg_pool *tg_play_open(int min_workers) {
    tg_error err;
    tg_pool *pool = NULL;
    tg_pool_opts opts = {.bind = address,
                         .min_workers = min_workers,
                         .open_timeout_ms = 10000,
                         .call_timeout_ms = 10000,
                         .heartbeat_ms = 1000};
    tg_status st = tg_pool_open(&pool, &opts, &err);
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s", st == TG_OK ? "" : err.msg);
    return pool;
}

/* The policy: tokens are a function of (episode, step); runs of 1 to 3. */
static size_t choose_tokens(uint64_t episode, uint32_t step, int32_t out[3]) {
    uint64_t key[2] = {episode, step};
    uint64_t h = tg_siphash(9, 9, key, sizeof key);
    size_t n = 1 + h % 3;
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)((h >> (8 * (i + 1))) % 12); /* 0 ends the episode */
    return n;
}

typedef struct player {
    uint64_t episode[64];
    uint32_t step[64];
    uint64_t next;
} player;

static void begin_episode(tg_pool *pool, player *pl, uint32_t slot) {
    tg_error err;
    pl->episode[slot] = pl->next++;
    pl->step[slot] = 0;
    tg_reset_item item = {
        .slot = slot, .episode = pl->episode[slot], .seed = TG_PLAY_SEED, .split = TG_SPLIT_TRAIN};
    CHECK_OK(tg_pool_reset(pool, &item, 1, &err));
}

static void next_step(tg_pool *pool, player *pl, uint32_t slot) {
    tg_error err;
    int32_t tokens[3];
    tg_step_item item = {
        .slot = slot, .episode = pl->episode[slot], .step = pl->step[slot], .tokens = tokens};
    item.n_tokens = choose_tokens(item.episode, item.step, tokens);
    CHECK_OK(tg_pool_step(pool, &item, 1, &err));
}

/* True when the slot's episode is over. */
static bool take(tg_transcript *t, player *pl, const tg_pool_event *e) {
    if (e->kind == TG_POOL_RESET) {
        const tg_reset_result *r = &e->reset;
        uint64_t *h = &t->episode[pl->episode[r->slot]];
        if (r->code == TG_CODE_OK)
            *h = tg_siphash(*h, 1, r->prompt, r->n_prompt * sizeof *r->prompt);
        if (r->code == TG_CODE_OK) return false;
        t->deadline += r->code == TG_CODE_DEADLINE_EXCEEDED;
        t->other += r->code != TG_CODE_DEADLINE_EXCEEDED;
        return true;
    }
    const tg_step_result *r = &e->step;
    uint64_t *h = &t->episode[pl->episode[r->slot]];
    CHECK_EQ(r->episode, pl->episode[r->slot]);
    CHECK_EQ(r->step, pl->step[r->slot]);
    if (r->code == TG_CODE_OK) {
        *h = tg_siphash(*h, r->state_digest, r->rewards, r->n_applied * sizeof *r->rewards);
        pl->step[r->slot] += r->n_applied;
        return r->terminated || r->truncated;
    }
    t->aborted += r->code == TG_CODE_EPISODE_ABORTED;
    t->deadline += r->code == TG_CODE_DEADLINE_EXCEEDED;
    t->other += r->code != TG_CODE_EPISODE_ABORTED && r->code != TG_CODE_DEADLINE_EXCEEDED;
    *h = 0;
    return true;
}

/* Plays all episodes over n slots; `meanwhile` is called after each event. */
void tg_play(tg_pool *pool, uint32_t n, tg_transcript *t, void (*meanwhile)(void *arg, int event),
             void *arg) {
    tg_error err;
    player pl = {.next = 0};
    *t = (tg_transcript){0};
    CHECK_OK(tg_pool_open_slots(pool, (int)n, &err));
    for (uint32_t s = 0; s < n; s++) begin_episode(pool, &pl, s);
    for (int event = 0; t->finished < TG_PLAY_EPISODES; event++) {
        tg_pool_event e;
        tg_status st = tg_pool_wait(pool, &e, 30000, &err);
        if (!tg_check(st == TG_OK, __FILE__, __LINE__, "%s", err.msg)) return;
        uint32_t slot = e.kind == TG_POOL_RESET ? e.reset.slot : e.step.slot;
        if (!take(t, &pl, &e)) {
            next_step(pool, &pl, slot);
        } else {
            t->finished++;
            if (pl.next < TG_PLAY_EPISODES) begin_episode(pool, &pl, slot);
        }
        if (meanwhile) meanwhile(arg, event);
    }
    CHECK_EQ(tg_pool_pending(pool), 0);
}

bool tg_play_same(const tg_transcript *a, const tg_transcript *b) {
    return !memcmp(a->episode, b->episode, sizeof a->episode);
}

/* The undisturbed run with one worker. */
const tg_transcript *tg_play_reference(void) {
    static tg_transcript t;
    static bool made;
    if (made) return &t;
    made = true;
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_address()});
    tg_pool *pool = tg_play_open(1);
    if (pool) tg_play(pool, 1, &t, NULL, NULL);
    CHECK_EQ(t.finished, TG_PLAY_EPISODES);
    tg_pool_close(&pool);
    tg_fake_stop(&w, true);
    return &t;
}

const char *tg_play_at(void) {
    return address;
}

void tg_play_replace(tg_fake_worker **w) {
    tg_fake_stop(w, false);
    *w = tg_fake_start(&(tg_fake_opts){.address = tg_play_at()});
}
