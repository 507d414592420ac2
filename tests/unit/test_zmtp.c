/* Greeting, READY, frames and PING byte by byte; every length that lies. Exchanges with libzmq itself: test_ipc.c. */
#include "common/net/zmtp.h"
#include "tests/support/tg_test.h"

#include <string.h>

TEST(the_greeting_is_ours_whole_and_every_part_of_it) {
    uint8_t g[TG_ZMTP_GREETING];
    tg_zmtp_put_greeting(g);
    for (size_t n = 0; n < sizeof g; n++) CHECK_EQ(tg_zmtp_check_greeting(g, n), TG_ZMTP_PART);
    CHECK_EQ(tg_zmtp_check_greeting(g, sizeof g), TG_ZMTP_OK);
    static const size_t matters[] = {0, 9, 10, 12, 13, 14, 15, 16, 31};
    for (size_t i = 0; i < sizeof matters / sizeof *matters; i++) {
        size_t at = matters[i];
        tg_zmtp_put_greeting(g);
        g[at] = at == 10 ? 1 : g[at] ^ 0x20;
        CHECK_EQ(tg_zmtp_check_greeting(g, at), TG_ZMTP_PART);
        CHECK_EQ(tg_zmtp_check_greeting(g, at + 1), TG_ZMTP_BAD); /* found with that byte */
    }
    tg_zmtp_put_greeting(g);
    g[10] = 3, g[11] = 0; /* version 3.0 */
    CHECK_EQ(tg_zmtp_check_greeting(g, sizeof g), TG_ZMTP_OK);
}

TEST(frames_of_every_length_come_back) {
    static uint8_t bytes[TG_ZMTP_HEAD + 70000];
    static const size_t lengths[] = {0, 1, 254, 255, 256, 257, 65535, 65536, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t len = lengths[i], head = tg_zmtp_put_head(bytes, TG_ZMTP_MORE, len);
        tg_zmtp_frame f;
        CHECK_EQ(head, len < 256 ? 2 : 9);
        for (size_t n = 0; n < head; n++) {
            CHECK_EQ(tg_zmtp_read_frame(bytes, n, 70000, &f), TG_ZMTP_PART);
            CHECK_EQ(f.total, 0);
        }
        if (len) {
            CHECK_EQ(tg_zmtp_read_frame(bytes, head + len - 1, 70000, &f), TG_ZMTP_PART);
            CHECK_EQ(f.total, head + len);
            CHECK_EQ(tg_zmtp_read_frame(bytes, head, len - 1, &f), TG_ZMTP_BAD); /* too long */
        }
        CHECK_EQ(tg_zmtp_read_frame(bytes, head + len, len, &f), TG_ZMTP_OK);
        CHECK(f.body == bytes + head && f.len == len && f.total == head + len);
        CHECK(f.flags & TG_ZMTP_MORE);
    }
}

TEST(lengths_that_lie_are_refused_from_the_head_alone) {
    tg_zmtp_frame f;
    uint8_t huge[9] = {TG_ZMTP_LONG, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    CHECK_EQ(tg_zmtp_read_frame(huge, 9, SIZE_MAX / 2, &f), TG_ZMTP_BAD);
    uint8_t one_more[9] = {TG_ZMTP_LONG, 0, 0, 0, 0, 4, 0, 0, 1}; /* 64 MiB and a byte */
    CHECK_EQ(tg_zmtp_read_frame(one_more, 9, 64 << 20, &f), TG_ZMTP_BAD);
    one_more[8] = 0;
    CHECK_EQ(tg_zmtp_read_frame(one_more, 9, 64 << 20, &f), TG_ZMTP_PART);
    uint8_t command[9] = {TG_ZMTP_LONG | TG_ZMTP_COMMAND, 0, 0, 0, 0, 0, 0, 2, 1};
    CHECK_EQ(tg_zmtp_read_frame(command, 9, 64 << 20, &f), TG_ZMTP_BAD); /* 513 bytes */
    static const uint8_t flags[] = {8, 0x80, TG_ZMTP_COMMAND | TG_ZMTP_MORE, 0xff};
    for (size_t i = 0; i < sizeof flags; i++)
        CHECK_EQ(tg_zmtp_read_frame(&flags[i], 1, 100, &f), TG_ZMTP_BAD);
}

TEST(ready_says_which_socket) {
    uint8_t bytes[TG_ZMTP_READY];
    for (int router = 0; router < 2; router++) {
        size_t n = tg_zmtp_put_ready(bytes, router);
        tg_zmtp_frame f;
        CHECK_EQ(tg_zmtp_read_frame(bytes, n, 0, &f), TG_ZMTP_OK);
        CHECK_EQ(f.flags, TG_ZMTP_COMMAND);
        CHECK(tg_zmtp_is_ready(f.body, f.len, true));
        CHECK(tg_zmtp_is_ready(f.body, f.len, false));
        for (size_t cut = 0; cut < f.len;
             cut++) /* every part: never beyond the end; whole pairs may pass */
            if (cut != f.len - 13) CHECK(!tg_zmtp_is_ready(f.body, cut, true));
    }
    static const struct {
        const char *body;
        size_t len;
        bool router, dealer;
    } cases[] = {
        {"\5READY\13Socket-Type\0\0\0\3REQ", 25, true, false},
        {"\5READY\13socket-TYPE\0\0\0\3REP", 25, false, true},
        {"\5READY\13Socket-Type\0\0\0\3PUB", 25, false, false},
        {"\5READY\13Socket-Type\0\0\0\xffREQ", 25, false, false},
        {"\5READY\13Socket-Type\xff\xff\xff\xffREQ", 25, false, false},
        {"\5READY\377Socket-Type\0\0\0\3REQ", 25, false, false},
        {"\5READY", 6, false, false},
        {"\5ERROR\13Socket-Type\0\0\0\3REQ", 25, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(tg_zmtp_is_ready((const uint8_t *)cases[i].body, cases[i].len, true),
                 cases[i].router);
        CHECK_EQ(tg_zmtp_is_ready((const uint8_t *)cases[i].body, cases[i].len, false),
                 cases[i].dealer);
    }
}

TEST(ping_is_answered_with_its_own_words) {
    uint8_t out[TG_ZMTP_READY];
    size_t n = tg_zmtp_put_answer(out, (const uint8_t *)"\4PING\0\24hello", 12);
    CHECK_EQ(n, 12);
    CHECK(!memcmp(out, "\4\12\4PONGhello", 12));
    CHECK_EQ(tg_zmtp_put_answer(out, (const uint8_t *)"\4PING\0\24", 7), 7);
    CHECK_EQ(tg_zmtp_put_answer(out, (const uint8_t *)"\4PING\0", 6), 0);
    CHECK_EQ(tg_zmtp_put_answer(out, (const uint8_t *)"\4PING\0\24aaaaaaaaaaaaaaaaa", 24), 0);
    CHECK_EQ(tg_zmtp_put_answer(out, (const uint8_t *)"\4PONG\0\24hello", 12), 0);
    CHECK_EQ(tg_zmtp_put_answer(out, (const uint8_t *)"", 0), 0);
}

TEST_MAIN
