/* Frames of any bytes, as they come from a socket. Half of the inputs (by the first byte) get a right magic,
 * length and checksum, so that the payload behind the checks is reached too. */
#include "common/base/check.h"
#include "common/base/hash.h"
#include "proto/codec.h"
#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *frame, size_t size) {
    if (size < TG_FRAME_HEADER) return;
    uint32_t magic = TG_FRAME_MAGIC, len = (uint32_t)(size - TG_FRAME_HEADER);
    uint32_t crc = tg_crc32c(0, frame + TG_FRAME_HEADER, len);
    memcpy(frame, &magic, 4);
    frame[4] %= 20;
    frame[5] = 0;
    memcpy(frame + 24, &len, 4);
    memcpy(frame + 28, &crc, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    size_t len = size - 1;
    uint8_t *frame = malloc(len ? len : 1); /* exactly as long, for the sanitizer */
    if (!frame) return 0;
    memcpy(frame, data + 1, len);
    if (data[0] & 1) mend(frame, len);
    tg_frame head;
    tg_error err = {0};
    void *msg = NULL;
    tg_status st = tg_frame_decode(frame, len, &head, &msg, &err);
    TG_ASSERT(st == TG_OK ? msg != NULL : st == TG_PROTOCOL && err.msg[0] && !msg);
    tg_buf out = {0};
    if (msg) TG_ASSERT(tg_frame_encode(&head, msg, &out, &err) == TG_OK);
    tg_buf_fini(&out);
    tg_msg_free(msg);
    free(frame);
    return 0;
}
