/* Messages to bytes and back. The only user of the generated protobuf-c code.
 *
 * Decoding validates everything into plain C: UTF-8, enum values, counts against proto/limits.h
 * before anything is allocated, blob lengths. A bad payload is TG_PROTOCOL with the field's name;
 * nothing leaks. */
#ifndef TG_PROTO_CODEC_H
#define TG_PROTO_CODEC_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "proto/messages.h"

/* Appends the payload of a message of this type; msg points to the matching struct (TG_MSG_STEP:
 * tg_step_batch …). */
tg_status tg_msg_encode(tg_msg_type type, const void *msg, tg_buf *out,
                        tg_error *err) TG_MUST_CHECK;
/* *out is owned: one block, tg_msg_free. */
tg_status tg_msg_decode(tg_msg_type type, const void *bytes, size_t len, void **out,
                        tg_error *err) TG_MUST_CHECK;
void tg_msg_free(void *msg); /* NULL is allowed */

/* The same without allocating in the long run: the arena is reset first. */
tg_status tg_msg_encode_in(tg_arena *arena, tg_msg_type type, const void *msg, tg_buf *out,
                           tg_error *err) TG_MUST_CHECK;

/* Memory of messages that were freed, for the next ones. One thread at a time decodes from it and frees what came from
 * it; messages may outlive it. */
typedef struct tg_msg_pool tg_msg_pool;
tg_msg_pool *tg_msg_pool_create(void); /* NULL: out of memory */
void tg_msg_pool_release(tg_msg_pool **pool);
/* tg_msg_decode from the pool; NULL: from the heap. */
tg_status tg_msg_decode_from(tg_msg_pool *pool, tg_msg_type type, const void *bytes, size_t len,
                             void **out, tg_error *err) TG_MUST_CHECK;

#endif
