/* proto-record FILE: writes frames of every type with random content, each behind its length (u32, little endian), for
 * tests/golden/proto. A recording of one minor version is made once, with that version, and read by all later ones. */
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/msg.h"

#include <stdio.h>

enum { EACH = 6, LARGEST = 1500, TRIES = 200 };

int main(int argc, char **argv) {
    FILE *f = argc == 2 ? fopen(argv[1], "wb") : NULL;
    int written = 0;
    if (!f) {
        fprintf(stderr, "usage: proto-record FILE\n");
        return 64;
    }
    for (int type = TG_TEST_MSG_FIRST; type <= TG_TEST_MSG_LAST; type++) {
        for (int i = 0, n = 0; i < TRIES && n < EACH; i++) {
            tg_arena a = {0};
            tg_buf b = {0};
            tg_error err;
            tg_rng r = tg_rng_at(12, TG_RNG_TEST, (uint64_t)type, (uint64_t)i);
            tg_frame head = {(tg_msg_type)type, i % 2 ? TG_FRAME_REPLY : 0, tg_rng_u32(&r),
                             tg_rng_u32(&r)};
            void *msg = tg_test_msg_random(&a, &r, (tg_msg_type)type);
            if (tg_frame_encode(&head, msg, &b, &err) == TG_OK && b.len <= LARGEST) {
                unsigned char len[4] = {b.len & 255, b.len >> 8 & 255, 0, 0};
                fwrite(len, 1, 4, f);
                fwrite(b.data, 1, b.len, f);
                n++, written++;
            }
            tg_buf_fini(&b);
            tg_arena_fini(&a);
        }
    }
    printf("%d frames\n", written);
    return fclose(f) == 0 ? 0 : 74;
}
