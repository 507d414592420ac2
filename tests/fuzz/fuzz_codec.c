/* Payloads of any bytes (the first byte chooses the type): decoded or refused with a message, within the
 * bound on memory; what is decoded can be encoded, and then stays the same. */
#include "common/base/buf.h"
#include "common/base/check.h"
#include "proto/codec.h"
#include "proto/codec_family.h"
#include "tests/support/msg.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    tg_msg_type type = (tg_msg_type)(data[0] % (TG_TEST_MSG_LAST + 2)); /* unknown types too */
    tg_error err = {0};
    tg_decode_cost cost;
    void *msg = NULL, *again = NULL;
    tg_status st = tg_msg_decode_counted(type, data + 1, size - 1, &msg, &cost, &err);
    TG_ASSERT(st == TG_OK || (st == TG_PROTOCOL && err.msg[0] && !msg));
    if (st != TG_OK) return 0;
    TG_ASSERT(cost.scratch + cost.block <= cost.bound);
    tg_buf first = {0}, second = {0}, print = {0};
    tg_test_msg_print(type, msg, &print); /* reads all of it */
    TG_ASSERT(tg_msg_encode(type, msg, &first, &err) == TG_OK);
    TG_ASSERT(tg_msg_decode(type, first.data, first.len, &again, &err) == TG_OK);
    TG_ASSERT(tg_msg_encode(type, again, &second, &err) == TG_OK);
    TG_ASSERT(first.len == second.len &&
              (first.len == 0 || !memcmp(first.data, second.data, first.len)));
    tg_msg_free(msg);
    tg_msg_free(again);
    tg_buf_fini(&first);
    tg_buf_fini(&second);
    tg_buf_fini(&print);
    return 0;
}
