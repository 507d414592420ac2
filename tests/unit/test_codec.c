/* The codec: every message there and back, hostile bytes, the bound on memory, failing memory. */
#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "proto/codec.h"
#include "proto/codec_family.h"
#include "proto/frame.h"
#include "proto/limits.h"
#include "tests/support/msg.h"
#include "tests/support/tg_test.h"

#include <stdlib.h>

TEST(every_message_survives_the_round_trip) {
    tg_rng r = tg_rng_at(1, TG_RNG_TEST, 0, 0);
    tg_error err;
    for (int round = 0; round < 200; round++) {
        for (int type = TG_TEST_MSG_FIRST; type <= TG_TEST_MSG_LAST; type++) {
            tg_arena a = {0};
            tg_buf bytes = {0}, before = {0}, after = {0};
            void *msg = tg_test_msg_random(&a, &r, (tg_msg_type)type), *back = NULL;
            CHECK_OK(tg_msg_encode((tg_msg_type)type, msg, &bytes, &err));
            CHECK_OK(tg_msg_decode((tg_msg_type)type, bytes.data, bytes.len, &back, &err));
            if (back) {
                tg_test_msg_print((tg_msg_type)type, msg, &before);
                tg_test_msg_print((tg_msg_type)type, back, &after);
                CHECK_STR(before.data, after.data);
            }
            tg_msg_free(back);
            tg_buf_fini(&bytes);
            tg_buf_fini(&before);
            tg_buf_fini(&after);
            tg_arena_fini(&a);
        }
    }
}

TEST(empty_payloads_are_messages_of_defaults) {
    tg_error err;
    for (int type = TG_MSG_WELCOME; type <= TG_TEST_MSG_LAST; type++) {
        void *msg;
        CHECK_OK(tg_msg_decode((tg_msg_type)type, "", 0, &msg, &err));
        tg_msg_free(msg);
    }
    void *msg;
    CHECK_EQ(tg_msg_decode(TG_MSG_HELLO, "", 0, &msg, &err), TG_PROTOCOL);
    CHECK_STR(err.msg, "Hello.role: missing");
    CHECK_EQ(tg_msg_decode((tg_msg_type)99, "", 0, &msg, &err), TG_PROTOCOL);
}

/* ---- hostile bytes -------------------------------------------------------------------------- */

static void expect_refused(tg_msg_type type, const void *bytes, size_t len, const char *why) {
    tg_error err;
    void *msg = NULL;
    uint64_t calls = tg_alloc_calls();
    CHECK_EQ(tg_msg_decode(type, bytes, len, &msg, &err), TG_PROTOCOL);
    CHECK_EQ(tg_alloc_calls() - calls, 0); /* nothing was allocated for it */
    tg_check(strstr(err.msg, why) != NULL, __FILE__, __LINE__, "\"%s\" should contain \"%s\"",
             err.msg, why);
    CHECK(msg == NULL);
}
#define REFUSED(type, bytes, why) expect_refused(type, bytes, sizeof(bytes) - 1, why)

TEST(malformed_payloads_are_refused_by_field) {
    REFUSED(TG_MSG_BYE,
            "\x0a\x05"
            "abc",
            "Bye: cut off");
    REFUSED(TG_MSG_BYE, "\x0a", "Bye: cut off");
    REFUSED(TG_MSG_BYE, "\x0b\x0c", "Bye: cut off");                      /* group */
    REFUSED(TG_MSG_BYE, "\x00\x01", "Bye: cut off");                      /* field 0 */
    REFUSED(TG_MSG_BYE, "\x98\xf0\x98\x9f\x80\x00\x08", "Bye: cut off");  /* key of six bytes */
    REFUSED(TG_MSG_BYE, "\x08\x01", "Bye.reason: has another wire type"); /* varint for text */
    REFUSED(TG_MSG_BYE, "\x0a\x01\xff", "Bye.reason: not UTF-8");
    REFUSED(TG_MSG_BYE, "\x0a\x02\xc0\x80", "Bye.reason: not UTF-8");         /* overlong */
    REFUSED(TG_MSG_BYE, "\x0a\x03\xed\xa0\x80", "Bye.reason: not UTF-8");     /* surrogate */
    REFUSED(TG_MSG_BYE, "\x0a\x04\xf4\x90\x80\x80", "Bye.reason: not UTF-8"); /* above U+10FFFF */
    REFUSED(TG_MSG_BYE, "\x0a\x02\xe2\x82", "Bye.reason: not UTF-8"); /* cut in a character */
    REFUSED(TG_MSG_BYE, "\x0a\x01\x00", "Bye.reason: not UTF-8");     /* NUL */
    REFUSED(TG_MSG_BYE, "\x0a\x01x\x0a\x01y", "Bye.reason: sent twice");
    REFUSED(TG_MSG_BYE, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "Bye: cut off"); /* length 2^64 - 1 */
    REFUSED(TG_MSG_HEARTBEAT, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            "Heartbeat: cut off"); /* > 64 bits */
    REFUSED(TG_MSG_ERROR, "\x08\x17", "Error.code: unknown value");
    REFUSED(TG_MSG_ERROR, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "Error.code: unknown value"); /* -1 */
    REFUSED(TG_MSG_STEP, "\x0a\x05\x22\x03\x01\x00\x00", "StepItem.tokens: length is not");
    REFUSED(TG_MSG_STEP, "\x0a\x06\x22\x04\xff\xff\xff\xff", "StepItem.tokens: a token id");
    REFUSED(TG_MSG_HELLO, "\x20\x01\x32\x05uuid!", "Hello.peer_uuid: length is not");
    REFUSED(TG_MSG_HELLO, "\x20\x01\x52\x03tok", "Hello.resume_token: length is not");
    REFUSED(TG_MSG_RESTORE, "\x0a\x06\x32\x04\xff\xff\xff\xff", "RestoreItem.tokens: a token id");
    REFUSED(TG_MSG_RESTORE_REPLY, "\x0a\x06\x3a\x04\xff\xff\xff\xff",
            "RestoreResult.prompt: a token id");
    REFUSED(TG_MSG_RESTORE_REPLY, "\x0a\x05\x3a\x03\x01\x00\x00", "RestoreResult.prompt");
    REFUSED(TG_MSG_RESTORE_REPLY, "\x0a\x02\x40\x05", "RestoreResult.stop");
    REFUSED(TG_MSG_OPEN_SLOTS, "\x12\x02\x01\x80", "OpenSlots.slots: packed numbers are cut off");
}

TEST(counts_that_disagree_are_refused) {
    tg_error err;
    void *msg;
    /* StepReply { items { n_applied = 3, rewards = 8 bytes } } */
    static const char rewards[] = "\x0a\x0c\x30\x03\x3a\x08\0\0\0\0\0\0\0\0";
    CHECK_EQ(tg_msg_decode(TG_MSG_STEP_REPLY, rewards, sizeof rewards - 1, &msg, &err),
             TG_PROTOCOL);
    CHECK_STR(err.msg, "StepResult.rewards: 8 bytes for 3 applied tokens");
    static const char log[] = "\x0a\x0a\x32\x08\1\0\0\0\2\0\0\0"; /* RestoreItem without rewards */
    CHECK_EQ(tg_msg_decode(TG_MSG_RESTORE, log, sizeof log - 1, &msg, &err), TG_PROTOCOL);
    CHECK_STR(err.msg, "RestoreItem.rewards: 0 bytes for 2 tokens");
    static const char state[] = "\x0a\x0a\x52\x08\0\0\0\0\0\0\0\0"; /* SlotState without tokens */
    CHECK_EQ(tg_msg_decode(TG_MSG_SNAPSHOT_REPLY, state, sizeof state - 1, &msg, &err),
             TG_PROTOCOL);
    CHECK_STR(err.msg, "SlotState.rewards: 8 bytes for 0 tokens");
    static const char slots[] =
        "\x08\x05\x12\x02\x01\x02"; /* OpenSlots { n = 5, slots = [1, 2] } */
    CHECK_EQ(tg_msg_decode(TG_MSG_OPEN_SLOTS, slots, sizeof slots - 1, &msg, &err), TG_PROTOCOL);
    CHECK_STR(err.msg, "OpenSlots.n: 5, but 2 slots are named");
}

TEST(unknown_fields_of_a_later_minor_are_skipped) {
    tg_error err;
    void *msg;
    static const char later[] = "\x0a\x02hi\xa2\x06\x03new\xa8\x06\x07"; /* fields 100 and 101 */
    REQUIRE_OK(tg_msg_decode(TG_MSG_BYE, later, sizeof later - 1, &msg, &err));
    CHECK_STR(((tg_bye *)msg)->reason, "hi");
    tg_msg_free(msg);
    char many[3 * 40];
    for (int i = 0; i < 40; i++) memcpy(many + 3 * i, "\xa8\x06\x07", 3);
    expect_refused(TG_MSG_BYE, many, sizeof many, "unknown fields");
}

/* `count` times the same bytes. */
static char *repeat(const char *unit, size_t unit_len, size_t count) {
    char *all = malloc(unit_len * count);
    for (size_t i = 0; all && i < count; i++) memcpy(all + i * unit_len, unit, unit_len);
    return all;
}

TEST(caps_are_checked_before_anything_is_allocated) {
    static const struct {
        tg_msg_type type;
        const char *unit;
        size_t len, count;
        const char *why;
    } cases[] = {
        {TG_MSG_STEP, "\x0a\x00", 2, 1000000, "StepBatch.items: 4097 entries"},
        {TG_MSG_STEP_REPLY, "\x0a\x00", 2, 4097, "StepReply.items: 4097 entries"},
        {TG_MSG_METRIC, "\x12\x00", 2, 65537, "MetricRequest.items: 65537 entries"},
        {TG_MSG_METRIC_REPLY, "\x12\x00", 2, 65537, "MetricReply.texts: 65537 entries"},
        {TG_MSG_SAMPLES, "\x0a\x02\x22\x00", 4, 4097, "Samples.items: 4097 entries"},
        {TG_MSG_CLOSE_SLOTS, "\x08\x01", 2, 65537,
         "CloseSlots.slots: 65537 entries"}, /* not packed */
        {TG_MSG_CANCEL, "\x08\x01", 2, 65537, "Cancel.slots: 65537 entries"},
        {TG_MSG_SNAPSHOT, "\x08\x01", 2, 65537, "SnapshotRequest.slots: 65537 entries"},
        {TG_MSG_RESTORE, "\x0a\x00", 2, 4097, "RestoreBatch.items: 4097 entries"},
        {TG_MSG_SNAPSHOT_REPLY, "\x0a\x00", 2, 4097, "SnapshotReply.items: 4097 entries"},
        {TG_MSG_WELCOME, "\x6a\x00", 2, 257, "Welcome.functions: 257 entries"},
        {TG_MSG_SCORE_REPLY, "\x0a\x00", 2, 5000, "ScoreReply.items: 4097 entries"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *bytes = repeat(cases[i].unit, cases[i].len, cases[i].count);
        if (bytes)
            expect_refused(cases[i].type, bytes, cases[i].len * cases[i].count, cases[i].why);
        free(bytes);
    }
    char long_name[2 + 1 + 300] = "\x0a\xac\x02"; /* ScoreRequest.fn of 300 bytes */
    memset(long_name + 3, 'x', 300);
    expect_refused(TG_MSG_SCORE, long_name, sizeof long_name,
                   "ScoreRequest.fn: 300 bytes, at most 256");
}

TEST(encoders_refuse_what_a_peer_would_refuse) {
    tg_error err;
    tg_buf out = {0};
    tg_bye bye = {"\xff"};
    CHECK_EQ(tg_msg_encode(TG_MSG_BYE, &bye, &out, &err), TG_DATA);
    CHECK_EQ(out.len, 0);
    tg_reset_item *items = calloc(TG_LIMIT_BATCH + 1, sizeof *items);
    tg_reset_batch batch = {items, TG_LIMIT_BATCH + 1, false};
    CHECK_EQ(tg_msg_encode(TG_MSG_RESET, &batch, &out, &err), TG_DATA);
    batch.n = TG_LIMIT_BATCH;
    CHECK_OK(tg_msg_encode(TG_MSG_RESET, &batch, &out, &err));
    free(items);
    tg_buf_fini(&out);
}

/* The worst payloads the caps allow: minimal wire bytes for each entry. */
TEST(memory_stays_within_the_written_bound) {
    static const struct {
        tg_msg_type type;
        const char *unit;
        size_t len, count;
    } cases[] = {
        {TG_MSG_STEP, "\x0a\x00", 2, 4096},
        {TG_MSG_STEP_REPLY, "\x0a\x00", 2, 4096},
        {TG_MSG_STEP_REPLY, "\x0a\x0c\x7a\x00\x7a\x00\x7a\x00\x7a\x00\x7a\x00\x7a\x00", 14, 4096},
        {TG_MSG_METRIC, "\x12\x00", 2, 65536},
        {TG_MSG_METRIC_REPLY, "\x12\x00", 2, 65536},
        {TG_MSG_SAMPLES, "\x0a\x08\x22\x00\x22\x00\x22\x00\x22\x00", 10, 4096},
        {TG_MSG_SCORE, "\x12\x00", 2, 4096},
        {TG_MSG_CLOSE_SLOTS, "\x08\x01", 2, 65536},
        {TG_MSG_RESET, "\x0a\x00", 2, 17},
        {TG_MSG_RESET_REPLY, "\x0a\x00", 2, 33},
    };
    tg_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = cases[i].len * cases[i].count;
        char *bytes = repeat(cases[i].unit, cases[i].len, cases[i].count);
        void *msg = NULL;
        tg_decode_cost cost;
        CHECK_OK(tg_msg_decode_counted(cases[i].type, bytes, len, &msg, &cost, &err));
        tg_check(cost.scratch + cost.block <= cost.bound, __FILE__, __LINE__, "%s: %zu + %zu > %zu",
                 tg_msg_name(cases[i].type), cost.scratch, cost.block, cost.bound);
        tg_msg_free(msg);
        free(bytes);
    }
}

TEST(random_and_flipped_bytes_never_crash) {
    tg_rng r = tg_rng_at(2, TG_RNG_TEST, 0, 0);
    tg_error err;
    int accepted = 0;
    for (int round = 0; round < 3000; round++) {
        tg_msg_type type = (tg_msg_type)(TG_TEST_MSG_FIRST + tg_rng_below(&r, TG_TEST_MSG_LAST));
        tg_arena a = {0};
        tg_buf bytes = {0};
        CHECK_OK(tg_msg_encode(type, tg_test_msg_random(&a, &r, type), &bytes, &err));
        for (uint64_t flips = 1 + tg_rng_below(&r, 4); bytes.len && flips > 0; flips--) {
            bytes.data[tg_rng_below(&r, bytes.len)] = (char)tg_rng_u32(&r);
        }
        size_t len = tg_rng_below(&r, 3) ? bytes.len : tg_rng_below(&r, bytes.len + 1);
        void *msg = NULL;
        tg_decode_cost cost;
        tg_status st = tg_msg_decode_counted(type, bytes.data, len, &msg, &cost, &err);
        CHECK(st == TG_OK || st == TG_PROTOCOL);
        if (st == TG_OK) {
            CHECK(cost.scratch + cost.block <= cost.bound);
            tg_buf print = {0};
            tg_test_msg_print(type, msg, &print); /* reads every byte of it */
            tg_buf_fini(&print);
            accepted++;
        }
        tg_msg_free(msg);
        tg_buf_fini(&bytes);
        tg_arena_fini(&a);
    }
    CHECK(accepted > 100 && accepted < 2900);
}

TEST(failing_memory_is_reported_and_leaks_nothing) {
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    tg_error err;
    for (int type = TG_TEST_MSG_FIRST; type <= TG_TEST_MSG_LAST; type++) {
        tg_arena a = {0};
        tg_buf bytes = {0};
        void *source = tg_test_msg_random(&a, &r, (tg_msg_type)type);
        CHECK_OK(tg_msg_encode((tg_msg_type)type, source, &bytes, &err));
        for (int64_t k = 0;; k++) {
            tg_buf again = {0};
            tg_alloc_fail_after(k);
            tg_status st = tg_msg_encode((tg_msg_type)type, source, &again, &err);
            tg_alloc_fail_after(-1);
            tg_buf_fini(&again);
            if (st == TG_OK) break;
            CHECK_EQ(st, TG_NOMEM);
        }
        for (int64_t k = 0;; k++) {
            void *msg = NULL;
            tg_alloc_fail_after(k);
            tg_status st = tg_msg_decode((tg_msg_type)type, bytes.data, bytes.len, &msg, &err);
            tg_alloc_fail_after(-1);
            tg_msg_free(msg);
            if (st == TG_OK) break;
            CHECK_EQ(st, TG_NOMEM);
        }
        tg_buf_fini(&bytes);
        tg_arena_fini(&a);
    }
}

/* ---- frames --------------------------------------------------------------------------------- */

TEST(frames_carry_header_and_payload) {
    tg_error err;
    tg_buf out = {0};
    tg_bye bye = {"done"};
    tg_frame head = {TG_MSG_BYE, TG_FRAME_REPLY, 0x1122334455667788, 42}, got;
    REQUIRE_OK(tg_frame_encode(&head, &bye, &out, &err));
    static const unsigned char start[] = {'T',  'X',  'G',  '1',  18,   0,    1,    0, 0x88,
                                          0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 42};
    CHECK(!memcmp(out.data, start, sizeof start));
    CHECK_EQ(out.len, 32 + 6);
    void *msg = NULL;
    REQUIRE_OK(tg_frame_decode(out.data, out.len, &got, &msg, &err));
    CHECK_EQ(got.type, TG_MSG_BYE);
    CHECK_EQ(got.flags, TG_FRAME_REPLY);
    CHECK_EQ(got.session, 0x1122334455667788);
    CHECK_EQ(got.seq, 42);
    CHECK_STR(((tg_bye *)msg)->reason, "done");
    tg_msg_free(msg);
    tg_buf_fini(&out);
}

TEST(frames_are_checked_in_order) {
    tg_error err;
    tg_buf good = {0};
    tg_bye bye = {"done"};
    REQUIRE_OK(tg_frame_encode(&(tg_frame){TG_MSG_BYE, 0, 7, 8}, &bye, &good, &err));
    static const struct {
        size_t at;
        char value;
        size_t len;
        const char *why;
        uint64_t seq; /* readable in spite of the damage */
    } cases[] = {
        {0, 'T', 0, "shorter than its header", 0},
        {0, 'T', 31, "shorter than its header", 0},
        {3, '2', 38, "does not begin with TXG1", 0},
        {4, 77, 38, "message type 77 is unknown", 8},
        {4, 0, 38, "message type 0 is unknown", 8},
        {24, 5, 38, "header says 5 payload bytes, frame has 6", 8},
        {0, 'T', 37, "header says 6 payload bytes, frame has 5", 8},
        {28, 0x55, 38, "checksum does not match", 8},
        {37, 'X', 38, "checksum does not match", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char copy[38];
        memcpy(copy, good.data, sizeof copy);
        copy[cases[i].at] = cases[i].value;
        tg_frame head;
        void *msg = NULL;
        CHECK_EQ(tg_frame_decode(copy, cases[i].len, &head, &msg, &err), TG_PROTOCOL);
        tg_check(strstr(err.msg, cases[i].why) != NULL, __FILE__, __LINE__, "case %zu: %s", i,
                 err.msg);
        CHECK_EQ(head.seq, cases[i].seq);
        CHECK(msg == NULL);
    }
    tg_buf_fini(&good);
}

TEST(names_of_codes_and_types) {
    CHECK_STR(tg_code_name(TG_CODE_EPISODE_ABORTED), "EPISODE_ABORTED");
    CHECK_STR(tg_code_name((tg_code)99), "UNKNOWN");
    CHECK_STR(tg_msg_name(TG_MSG_STEP_REPLY), "STEP_REPLY");
    CHECK_STR(tg_msg_name((tg_msg_type)0), "UNKNOWN");
}

TEST_MAIN
