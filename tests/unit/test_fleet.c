/* The fleet on a loop of its own, against fake workers: what the pool's tests do not reach. */
#include "common/base/clock.h"
#include "common/net/fleet.h"
#include "tests/support/fake_worker.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS = 8, LOG = 8 };

typedef struct rig {
    uv_loop_t loop;
    uv_timer_t timer;
    tg_net *net;
    tg_fleet *fleet;
    char address[128];
    int resets, steps, restores;
    tg_code reset_code, step_code, restore_code;
    tg_reset_result reset;
    tg_step_result step;
    double rewards[LOG];
} rig;

static void on_reset(void *arg, const tg_reset_result *r) {
    rig *x = arg;
    x->resets++;
    x->reset_code = r->code;
    x->reset = *r; /* numbers only */
}

static void on_step(void *arg, const tg_step_result *r) {
    rig *x = arg;
    x->steps++;
    x->step_code = r->code;
    x->step = *r;
    for (uint32_t i = 0; i < r->n_applied && i < LOG; i++) x->rewards[i] = r->rewards[i];
}

static void on_restore(void *arg, const tg_restore_result *r) {
    rig *x = arg;
    x->restores++;
    x->restore_code = r->code;
}

static const tg_fleet_ops OPS = {
    .on_reset = on_reset, .on_step = on_step, .on_restore = on_restore};

static void on_tick(uv_timer_t *timer) {
    (void)timer;
}

static void rig_open(rig *x) {
    static int n;
    tg_error err;
    memset(x, 0, sizeof *x);
    snprintf(x->address, sizeof x->address, "ipc://%s/fleet%d", tg_test_tmpdir(), n++);
    uv_loop_init(&x->loop);
    uv_timer_init(&x->loop, &x->timer);
    uv_timer_start(&x->timer, on_tick, 5, 5);
    CHECK_OK(tg_net_create(&x->net, &err));
    tg_fleet_opts o = {.bind = x->address, .ops = &OPS, .arg = x};
    CHECK_OK(tg_fleet_open(&x->fleet, x->net, &x->loop, &o, &err));
}

static void rig_close(rig *x) {
    tg_fleet_close(&x->fleet, "done");
    uv_close((uv_handle_t *)&x->timer, NULL);
    while (uv_run(&x->loop, UV_RUN_DEFAULT)) continue;
    uv_loop_close(&x->loop);
    tg_net_destroy(&x->net);
}

/* Turns the loop until *counter has this value; false after 10 s. */
static bool until(rig *x, const int *counter, int value) {
    uint64_t end = tg_clock_ms() + 10000;
    tg_fleet_kick(x->fleet);
    while (*counter < value && tg_clock_ms() < end) uv_run(&x->loop, UV_RUN_ONCE);
    return *counter >= value;
}

static bool until_open(rig *x, uint32_t slot) {
    uint64_t end = tg_clock_ms() + 10000;
    while (!tg_fleet_slot_is_open(x->fleet, slot) && tg_clock_ms() < end)
        uv_run(&x->loop, UV_RUN_ONCE);
    return tg_fleet_slot_is_open(x->fleet, slot);
}

static uint64_t soon(void) {
    return tg_clock_ms() + 5000;
}

TEST(a_number_is_not_used_again) {
    rig x;
    tg_error err;
    uint32_t a, b, c;
    rig_open(&x);
    CHECK_OK(tg_fleet_add_slot(x.fleet, &a, &err));
    CHECK_OK(tg_fleet_add_slot(x.fleet, &b, &err));
    CHECK_EQ(a, 0);
    CHECK_EQ(b, 1);
    tg_fleet_remove_slot(x.fleet, a);
    CHECK_OK(tg_fleet_add_slot(x.fleet, &c, &err));
    CHECK(c != a);
    CHECK_EQ(TG_FLEET_PLACE(c), TG_FLEET_PLACE(a));
    CHECK(!tg_fleet_slot_is_busy(x.fleet, a));
    CHECK_EQ(tg_fleet_reset(x.fleet, &(tg_reset_item){.slot = a}, false, soon(), &err), TG_USAGE);
    rig_close(&x);
}

TEST(a_cancelled_call_ends_at_once) {
    rig x;
    tg_error err;
    uint32_t id;
    rig_open(&x);
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = x.address, .fault = TG_FAKE_MUTE});
    CHECK_OK(tg_fleet_add_slot(x.fleet, &id, &err));
    CHECK(until_open(&x, id));
    int32_t token = 5;
    CHECK_OK(
        tg_fleet_reset(x.fleet, &(tg_reset_item){.slot = id, .episode = 1}, false, soon(), &err));
    CHECK(until(&x, &x.resets, 1));
    CHECK_OK(tg_fleet_step(x.fleet, &(tg_step_item){id, 1, 0, &token, 1}, false, soon(), &err));
    tg_fleet_kick(x.fleet);
    CHECK(tg_fleet_slot_is_busy(x.fleet, id));
    tg_fleet_cancel(x.fleet, id);
    CHECK_EQ(x.steps, 1);
    CHECK_EQ(x.step_code, TG_CODE_FAILED_STATE);
    CHECK(!tg_fleet_slot_is_busy(x.fleet, id));
    tg_fleet_cancel(x.fleet, id); /* nothing under way: nothing happens */
    CHECK_EQ(x.steps, 1);
    rig_close(&x);
    tg_fake_stop(&w, false);
}

/* An episode lived on one slot, put back on another: the same state, the same log, the next step gives the same. */
TEST(an_owner_can_put_an_episode_back) {
    rig x;
    tg_error err;
    uint32_t a, b;
    rig_open(&x);
    tg_fake_worker *w = tg_fake_start(&(tg_fake_opts){.address = x.address});
    CHECK_OK(tg_fleet_add_slot(x.fleet, &a, &err));
    CHECK_OK(tg_fleet_add_slot(x.fleet, &b, &err));
    CHECK(until_open(&x, a) && until_open(&x, b));
    int32_t tokens[3] = {4, 9, 2};
    tg_reset_item reset = {.slot = a, .episode = 7, .seed = 3, .split = TG_SPLIT_TRAIN};
    CHECK_OK(tg_fleet_reset(x.fleet, &reset, false, soon(), &err));
    CHECK(until(&x, &x.resets, 1));
    CHECK_OK(tg_fleet_step(x.fleet, &(tg_step_item){a, 7, 0, tokens, 2}, false, soon(), &err));
    CHECK(until(&x, &x.steps, 1));
    tg_fleet_log_view log = tg_fleet_slot_log(x.fleet, a);
    CHECK_EQ(log.n, 2);
    CHECK(log.live);
    CHECK(log.rewards[1] == x.rewards[1]);
    double rewards[2] = {log.rewards[0], log.rewards[1]}; /* the log moves on with the slot */
    tg_restore_item item = {.slot = b,
                            .episode = 7,
                            .seed = 3,
                            .split = TG_SPLIT_TRAIN,
                            .sample = log.reset.sample,
                            .tokens = tokens,
                            .rewards = rewards,
                            .n_tokens = log.n,
                            .reset_digest = x.reset.state_digest,
                            .state_digest = log.digest};
    CHECK_OK(tg_fleet_restore(x.fleet, &item, soon(), &err));
    CHECK(until(&x, &x.restores, 1));
    CHECK_EQ(x.restore_code, TG_CODE_OK);
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tg_fleet_step(x.fleet, &(tg_step_item){i ? b : a, 7, 2, tokens + 2, 1}, false,
                               soon(), &err));
        CHECK(until(&x, &x.steps, 2 + i));
        CHECK_EQ(x.step_code, TG_CODE_OK);
        digests[i] = x.step.state_digest;
    }
    CHECK(digests[0] == digests[1]);
    item.state_digest ^= 1;
    item.episode = 8;
    CHECK_OK(tg_fleet_restore(x.fleet, &item, soon(), &err));
    CHECK(until(&x, &x.restores, 2));
    CHECK_EQ(x.restore_code, TG_CODE_EPISODE_ABORTED);
    rig_close(&x);
    tg_fake_stop(&w, true);
}

TEST(slots_spread_over_workers_and_stay) {
    rig x;
    tg_error err;
    uint32_t ids[SLOTS];
    rig_open(&x);
    tg_fake_worker *a = tg_fake_start(&(tg_fake_opts){.address = x.address});
    for (int i = 0; i < SLOTS / 2; i++) CHECK_OK(tg_fleet_add_slot(x.fleet, &ids[i], &err));
    CHECK(until_open(&x, ids[SLOTS / 2 - 1]));
    tg_fake_worker *b = tg_fake_start(&(tg_fake_opts){.address = x.address});
    tg_fleet_stats st = {0};
    for (uint64_t end = tg_clock_ms() + 10000; st.workers < 2 && tg_clock_ms() < end;) {
        uv_run(&x.loop, UV_RUN_ONCE);
        tg_fleet_get_stats(x.fleet, &st);
    }
    CHECK_EQ(st.workers, 2);
    for (int i = SLOTS / 2; i < SLOTS; i++) CHECK_OK(tg_fleet_add_slot(x.fleet, &ids[i], &err));
    for (int i = 0; i < SLOTS; i++) {
        CHECK_OK(tg_fleet_reset(x.fleet, &(tg_reset_item){.slot = ids[i], .episode = 1}, false,
                                soon(), &err));
    }
    CHECK(until(&x, &x.resets, SLOTS));
    int32_t token = 3;
    for (int i = 0; i < SLOTS; i++)
        CHECK_OK(
            tg_fleet_step(x.fleet, &(tg_step_item){ids[i], 1, 0, &token, 1}, false, soon(), &err));
    CHECK(until(&x, &x.steps, SLOTS));
    CHECK_EQ(tg_fake_steps(a),
             SLOTS / 2); /* the new ones went to the emptier worker, the old ones stayed */
    CHECK_EQ(tg_fake_steps(b), SLOTS / 2);
    rig_close(&x);
    tg_fake_stop(&a, true);
    tg_fake_stop(&b, true);
}

TEST_MAIN
