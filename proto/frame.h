/* The frame: what travels as one ZeroMQ message part. Header and payload share the part, so a frame
 * arrives whole or not at all and needs one buffer; a message of several parts is a bad frame.
 *
 *      0  u32  magic         "TXG1"; the digit is the protocol's major version
 *      4  u16  type          tg_msg_type
 *      6  u16  flags         TG_FRAME_*; unknown bits are ignored
 *      8  u64  session       given by Welcome; 0 before
 *     16  u64  seq           chosen by the asker, repeated in the reply
 *     24  u32  payload_len   exactly the bytes that follow the header
 *     28  u32  crc32c        of the payload
 *     32       payload       one protobuf message of that type
 *
 * All numbers are little endian.
 * Checked in this order: length, magic, type known, payload_len, crc; only then is a payload
 * decoded. */
#ifndef TG_PROTO_FRAME_H
#define TG_PROTO_FRAME_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "proto/codec.h"
#include "proto/messages.h"

#include <stddef.h>
#include <stdint.h>

enum { TG_FRAME_HEADER = 32, TG_FRAME_MAGIC = 0x31475854 /* "TXG1" */ };
enum {
    TG_FRAME_REPLY = 1, /* answers the request with the same session and seq */
    TG_FRAME_MORE = 2,  /* with REPLY: further replies to the same request follow */
};

typedef struct tg_frame {
    tg_msg_type type;
    uint16_t flags;
    uint64_t session, seq;
} tg_frame;

/* Appends header and encoded payload of msg (the struct that belongs to head->type). On failure out
 * keeps its length. */
tg_status tg_frame_encode(const tg_frame *head, const void *msg, tg_buf *out,
                          tg_error *err) TG_MUST_CHECK;

/* With memory that is used again: see tg_msg_encode_in. */
tg_status tg_frame_encode_in(tg_arena *arena, const tg_frame *head, const void *msg, tg_buf *out,
                             tg_error *err) TG_MUST_CHECK;

/* Checks a frame without decoding it. *payload points into bytes. TG_PROTOCOL says which check
 * failed; head is filled as far as it could be read (type 0 when unknown), so that an answer can be
 * addressed. */
tg_status tg_frame_parse(const void *bytes, size_t len, tg_frame *head, const void **payload,
                         size_t *payload_len, tg_error *err) TG_MUST_CHECK;

/* tg_frame_parse and tg_msg_decode: *msg is owned (tg_msg_free). */
tg_status tg_frame_decode(const void *bytes, size_t len, tg_frame *head, void **msg,
                          tg_error *err) TG_MUST_CHECK;
/* From a pool; NULL: from the heap. */
tg_status tg_frame_decode_from(tg_msg_pool *pool, const void *bytes, size_t len, tg_frame *head,
                               void **msg, tg_error *err) TG_MUST_CHECK;

#endif
