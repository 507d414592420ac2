/* Messages for tests: filled at random, and printed as JSON with the names of textgen.proto. */
#ifndef TG_TEST_MSG_H
#define TG_TEST_MSG_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/rng.h"
#include "proto/messages.h"

/* A message of this type with random content within the limits; everything lives in the arena. Text
 * is multilingual, strings may be empty, arrays may be empty. */
void *tg_test_msg_random(tg_arena *a, tg_rng *r, tg_msg_type type);
/* One line, every field in the order of the schema, defaults too. Blobs of ids are arrays; doubles
 * are bits in hex. */
void tg_test_msg_print(tg_msg_type type, const void *msg, tg_buf *out);
enum { TG_TEST_MSG_FIRST = TG_MSG_HELLO, TG_TEST_MSG_LAST = TG_MSG_CANCEL };

#endif
