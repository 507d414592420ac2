/* What the families of messages share: the block a decoded message lives in, and the table row of a
 * type. Internal to proto/.
 *
 * Decoding runs each conversion twice over the same generated struct: first with base NULL, which
 * only adds up sizes and checks, then with a block of that size. So a decoded message is one
 * allocation, and the second pass cannot fail. */
#ifndef TG_PROTO_CODEC_FAMILY_H
#define TG_PROTO_CODEC_FAMILY_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "proto/codec.h"
#include "proto/messages.h"
#include "proto/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_block {
    unsigned char *base; /* NULL: measuring */
    size_t used;
} tg_block;

/* 8-byte aligned; NULL while measuring (and for 0 bytes). */
void *tg_block_take(tg_block *b, size_t count, size_t size);
const char *tg_block_text(tg_block *b, const char *text);
const char **tg_block_texts(tg_block *b, char *const *texts, size_t n);
/* The blob's entries, or NULL when empty; *n is set in both passes. */
const int32_t *tg_block_tokens(tg_block *b, ProtobufCBinaryData blob, size_t *n);
const double *tg_block_doubles(tg_block *b, ProtobufCBinaryData blob, size_t *n);

/* Element i of an array of the block, or the scratch element while measuring. */
#define TG_BLOCK_AT(array, i, scratch) ((array) ? &(array)[i] : &(scratch))

/* For encoding: blobs borrow little-endian memory as it is. */
ProtobufCBinaryData tg_blob_tokens(const int32_t *tokens, size_t n);
ProtobufCBinaryData tg_blob_doubles(const double *values, size_t n);

/* in: the generated struct; out: the plain one, *size of it* from the row. */
typedef tg_status tg_decode_fn(tg_block *b, const void *in, void *out, tg_error *err);
/* Builds the generated struct in the arena; NULL: out of memory. Borrows from in. */
typedef ProtobufCMessage *tg_encode_fn(tg_arena *a, const void *in);

typedef struct tg_codec_row {
    const tg_wire_message *wire;
    size_t size;
    tg_decode_fn *decode;
    tg_encode_fn *encode;
} tg_codec_row;

/* One per message type, by family. */
extern const tg_codec_row tg_codec_hello, tg_codec_welcome, tg_codec_heartbeat, tg_codec_error,
    tg_codec_bye; /* session */
extern const tg_codec_row tg_codec_open_slots, tg_codec_slots_opened, tg_codec_close_slots,
    tg_codec_snapshot, tg_codec_cancel; /* slots */
extern const tg_codec_row tg_codec_restore, tg_codec_restore_reply,
    tg_codec_snapshot_reply; /* restore */
extern const tg_codec_row tg_codec_reset, tg_codec_reset_reply, tg_codec_step,
    tg_codec_step_reply; /* episode */
extern const tg_codec_row tg_codec_sample_range, tg_codec_samples, tg_codec_metric,
    tg_codec_metric_reply; /* data */
extern const tg_codec_row tg_codec_score, tg_codec_score_reply;

/* Shared by episode and score messages. */
extern const tg_wire_message tg_wire_component;
struct Textgen__V1__Component;
const tg_component *tg_block_components(tg_block *b, struct Textgen__V1__Component *const *in,
                                        size_t n);
struct Textgen__V1__Component **tg_encode_components(tg_arena *a, const tg_component *in, size_t n);

/* What the last decode of this call allocated; for the test of the bound. */
typedef struct tg_decode_cost {
    size_t scratch, block, bound;
} tg_decode_cost;
tg_status tg_msg_decode_counted(tg_msg_type type, const void *bytes, size_t len, void **out,
                                tg_decode_cost *cost, tg_error *err) TG_MUST_CHECK;

/* msg_pool.c */
enum { TG_MSG_KEEP_BYTES = 1 << 20 }; /* larger memory is given back after its message */
/* A block for a message; NULL: out of memory. pool may be NULL. */
void *tg_msg_alloc(tg_msg_pool *pool, size_t bytes);
/* For what a decode needs only itself; NULL without a pool. It is empty. */
tg_arena *tg_msg_pool_scratch(tg_msg_pool *pool);

#endif
