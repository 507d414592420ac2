/* P3: frames that earlier minor versions of the protocol wrote are understood, and written again are the same bytes.
 * tests/golden/proto/minorN.frames were recorded by tests/tools/proto-record of that version. */
#include "common/base/file.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/msg.h"
#include "tests/support/tg_test.h"

#include <string.h>

static void replay(const char *name, int first_type, int last_type) {
    tg_buf all = {0};
    tg_error err;
    int seen[64] = {0}, frames = 0;
    REQUIRE_OK(tg_file_read(tg_test_path(name), 1 << 22, &all, &err));
    for (size_t at = 0; at + 4 <= all.len;) {
        const unsigned char *p = (const unsigned char *)all.data + at;
        size_t len = p[0] | (size_t)p[1] << 8;
        tg_frame head;
        void *msg = NULL;
        tg_buf again = {0};
        at += 4 + len;
        REQUIRE(at <= all.len);
        tg_status st = tg_frame_decode(p + 4, len, &head, &msg, &err);
        if (tg_check(st == TG_OK, __FILE__, __LINE__, "%s, frame %d: %s", name, frames,
                     st == TG_OK ? "" : err.msg)) {
            CHECK_OK(tg_frame_encode(&head, msg, &again, &err));
            tg_check(again.len == len && !memcmp(again.data, p + 4, len), __FILE__, __LINE__,
                     "%s, frame %d (%s): other bytes", name, frames, tg_msg_name(head.type));
            seen[head.type & 63]++;
        }
        tg_msg_free(msg);
        tg_buf_fini(&again);
        frames++;
    }
    for (int type = first_type; type <= last_type; type++)
        tg_check(seen[type] >= 3, __FILE__, __LINE__, "%s: %d frames of type %s", name, seen[type],
                 tg_msg_name((tg_msg_type)type));
    tg_buf_fini(&all);
}

TEST(P3_frames_of_minor_0) {
    replay("golden/proto/minor0.frames", TG_MSG_HELLO, TG_MSG_BYE);
}

TEST(P3_frames_of_minor_1) {
    replay("golden/proto/minor1.frames", TG_TEST_MSG_FIRST, TG_TEST_MSG_LAST);
}

TEST_MAIN
