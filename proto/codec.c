/* The door between bytes and plain structs: check (wire.c), unpack with bounded memory, convert
 * into one block.
 *
 * Invariant: whatever the payload, decoding allocates at most the bound of limits.h. Safe from any
 * thread. */
#include "proto/codec.h"

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "blobs are used as they travel: little endian");
_Static_assert(sizeof(double) == 8, "f64 blobs");

#define XX(name, value)                                                                            \
    _Static_assert((int)TG_CODE_##name == (int)TEXTGEN__V1__CODE__CODE_##name,                     \
                   "tg_code equals Code");
TG_CODE_MAP(XX)
#undef XX
#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)TEXTGEN__V1__##theirs, #ours)
SAME(TG_ROLE_CLIENT, ROLE__ROLE_CLIENT);
SAME(TG_ROLE_WORKER, ROLE__ROLE_WORKER);
SAME(TG_ROLE_BROKER, ROLE__ROLE_BROKER);
SAME(TG_ROLE_REWARD, ROLE__ROLE_REWARD);
SAME(TG_SPLIT_TRAIN, SPLIT__SPLIT_TRAIN);
SAME(TG_SPLIT_VAL, SPLIT__SPLIT_VAL);
SAME(TG_SPLIT_TEST, SPLIT__SPLIT_TEST);
SAME(TG_REWARD_OK, REWARD_STATUS__REWARD_OK);
SAME(TG_REWARD_PENDING, REWARD_STATUS__REWARD_PENDING);
SAME(TG_REWARD_FAILED, REWARD_STATUS__REWARD_FAILED);
SAME(TG_REWARD_TIMEOUT, REWARD_STATUS__REWARD_TIMEOUT);
SAME(TG_REWARD_INVALID, REWARD_STATUS__REWARD_INVALID);
SAME(TG_STOP_NONE, STOP_REASON__STOP_UNSPECIFIED);
SAME(TG_STOP_EOS, STOP_REASON__STOP_EOS);
SAME(TG_STOP_LENGTH, STOP_REASON__STOP_LENGTH);
SAME(TG_STOP_SEQUENCE, STOP_REASON__STOP_SEQUENCE);
SAME(TG_STOP_ABORTED, STOP_REASON__STOP_ABORTED);

const char *tg_code_name(tg_code code) {
    switch (code) {
#define XX(name, value)                                                                            \
    case TG_CODE_##name: return #name;
        TG_CODE_MAP(XX)
#undef XX
    }
    return "UNKNOWN";
}

const char *tg_msg_name(tg_msg_type type) {
    switch (type) {
#define XX(name, value)                                                                            \
    case TG_MSG_##name: return #name;
        TG_MSG_MAP(XX)
#undef XX
    }
    return "UNKNOWN";
}

static const tg_codec_row *const rows[] = {
    [TG_MSG_HELLO] = &tg_codec_hello,
    [TG_MSG_WELCOME] = &tg_codec_welcome,
    [TG_MSG_OPEN_SLOTS] = &tg_codec_open_slots,
    [TG_MSG_SLOTS_OPENED] = &tg_codec_slots_opened,
    [TG_MSG_CLOSE_SLOTS] = &tg_codec_close_slots,
    [TG_MSG_RESET] = &tg_codec_reset,
    [TG_MSG_RESET_REPLY] = &tg_codec_reset_reply,
    [TG_MSG_STEP] = &tg_codec_step,
    [TG_MSG_STEP_REPLY] = &tg_codec_step_reply,
    [TG_MSG_SAMPLE_RANGE] = &tg_codec_sample_range,
    [TG_MSG_SAMPLES] = &tg_codec_samples,
    [TG_MSG_METRIC] = &tg_codec_metric,
    [TG_MSG_METRIC_REPLY] = &tg_codec_metric_reply,
    [TG_MSG_SCORE] = &tg_codec_score,
    [TG_MSG_SCORE_REPLY] = &tg_codec_score_reply,
    [TG_MSG_HEARTBEAT] = &tg_codec_heartbeat,
    [TG_MSG_ERROR] = &tg_codec_error,
    [TG_MSG_BYE] = &tg_codec_bye,
    [TG_MSG_RESTORE] = &tg_codec_restore,
    [TG_MSG_RESTORE_REPLY] = &tg_codec_restore_reply,
    [TG_MSG_SNAPSHOT] = &tg_codec_snapshot,
    [TG_MSG_SNAPSHOT_REPLY] = &tg_codec_snapshot_reply,
    [TG_MSG_CANCEL] = &tg_codec_cancel,
};

static const tg_codec_row *row_of(tg_msg_type type) {
    return (size_t)type < TG_COUNT_OF(rows) ? rows[type] : NULL;
}

/* ---- the block ------------------------------------------------------------------------------ */

void *tg_block_take(tg_block *b, size_t count, size_t size) {
    if (count == 0) return NULL;
    void *p = b->base ? b->base + b->used : NULL;
    b->used += (count * size + 7) & ~(size_t)7; /* count is capped by wire.c: no overflow */
    return p;
}

const char *tg_block_text(tg_block *b, const char *text) {
    size_t len = text ? strlen(text) : 0;
    if (len == 0) return "";
    char *copy = tg_block_take(b, len + 1, 1);
    if (copy) memcpy(copy, text, len + 1);
    return copy;
}

const char **tg_block_texts(tg_block *b, char *const *texts, size_t n) {
    const char **out = tg_block_take(b, n, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const char *copy = tg_block_text(b, texts[i]);
        if (out) out[i] = copy;
    }
    return out;
}

static void *take_blob(tg_block *b, ProtobufCBinaryData blob, size_t unit, size_t *n) {
    *n = blob.len / unit;
    void *copy = tg_block_take(b, *n, unit);
    if (copy) memcpy(copy, blob.data, blob.len);
    return copy;
}

const int32_t *tg_block_tokens(tg_block *b, ProtobufCBinaryData blob, size_t *n) {
    return take_blob(b, blob, sizeof(int32_t), n);
}

const double *tg_block_doubles(tg_block *b, ProtobufCBinaryData blob, size_t *n) {
    return take_blob(b, blob, sizeof(double), n);
}

ProtobufCBinaryData tg_blob_tokens(const int32_t *tokens, size_t n) {
    return (ProtobufCBinaryData){n * sizeof *tokens, (uint8_t *)(uintptr_t)tokens};
}

ProtobufCBinaryData tg_blob_doubles(const double *values, size_t n) {
    return (ProtobufCBinaryData){n * sizeof *values, (uint8_t *)(uintptr_t)values};
}

/* ---- decoding ------------------------------------------------------------------------------- */

/* protobuf-c allocates from an arena that says no beyond the budget. */
typedef struct scratch {
    tg_arena *arena;
    size_t used, budget;
    bool over_budget, no_memory;
} scratch;

static void *scratch_alloc(void *data, size_t size) {
    scratch *s = data;
    if (size > s->budget - s->used) {
        s->over_budget = true;
        return NULL;
    }
    s->used += size;
    void *p = tg_arena_alloc(s->arena, size);
    if (!p) s->no_memory = true;
    return p;
}

static void scratch_free(void *data, void *p) {
    (void)data; /* the arena goes as a whole */
    (void)p;
}

static tg_status convert(const tg_codec_row *row, tg_msg_pool *pool, const ProtobufCMessage *in,
                         void **out, tg_decode_cost *cost, tg_error *err) {
    tg_block b = {0};
    union {
        tg_hello hello;
        tg_welcome welcome;
        tg_step_reply step;
        max_align_t align;
        char room[512];
    } sink;
    TG_ASSERT(row->size <= sizeof sink);
    tg_block_take(&b, 1, row->size);
    tg_status st = row->decode(&b, in, &sink, err);
    if (st != TG_OK) return st;
    cost->block = b.used;
    void *block = tg_msg_alloc(pool, b.used);
    if (!block) return tg_fail_nomem(err, b.used);
    tg_block fill = {block, 0};
    st = row->decode(&fill, in, tg_block_take(&fill, 1, row->size), err);
    TG_ASSERT(st == TG_OK && fill.used == b.used);
    *out = block;
    return TG_OK;
}

static tg_status decode(tg_msg_pool *pool, tg_msg_type type, const void *bytes, size_t len,
                        void **out, tg_decode_cost *cost, tg_error *err) {
    *out = NULL;
    *cost = (tg_decode_cost){0};
    const tg_codec_row *row = row_of(type);
    if (!row) return tg_fail(err, TG_PROTOCOL, "message type %d is unknown", (int)type);
    if (len > TG_LIMIT_MESSAGE) {
        return tg_fail(err, TG_PROTOCOL, "%s: %zu bytes, at most %d are allowed", tg_msg_name(type),
                       len, TG_LIMIT_MESSAGE);
    }
    size_t items = 0;
    tg_status st = tg_wire_check(row->wire, bytes, len, &items, err);
    if (st != TG_OK) return st;
    cost->bound = 2 * len + items * TG_DECODE_ITEM_COST + TG_DECODE_SLACK;
    tg_arena own = {0}, *reused = tg_msg_pool_scratch(pool);
    scratch s = {.arena = reused ? reused : &own, .budget = cost->bound};
    ProtobufCAllocator allocator = {scratch_alloc, scratch_free, &s};
    ProtobufCMessage *in = protobuf_c_message_unpack(row->wire->desc, &allocator, len, bytes);
    cost->scratch = s.used;
    if (in) {
        st = convert(row, pool, in, out, cost, err);
    } else if (s.no_memory) {
        st = tg_fail_nomem(err, s.used);
    } else {
        st = tg_fail(err, TG_PROTOCOL, "%s: %s", tg_msg_name(type),
                     s.over_budget ? "needs more memory than its size allows" : "malformed field");
    }
    if (!reused || s.used > TG_MSG_KEEP_BYTES) tg_arena_fini(s.arena);
    return st;
}

tg_status tg_msg_decode_counted(tg_msg_type type, const void *bytes, size_t len, void **out,
                                tg_decode_cost *cost, tg_error *err) {
    return decode(NULL, type, bytes, len, out, cost, err);
}

tg_status tg_msg_decode(tg_msg_type type, const void *bytes, size_t len, void **out,
                        tg_error *err) {
    return tg_msg_decode_from(NULL, type, bytes, len, out, err);
}

tg_status tg_msg_decode_from(tg_msg_pool *pool, tg_msg_type type, const void *bytes, size_t len,
                             void **out, tg_error *err) {
    tg_decode_cost cost;
    return decode(pool, type, bytes, len, out, &cost, err);
}

/* ---- encoding ------------------------------------------------------------------------------- */

static tg_status pack(const tg_codec_row *row, const ProtobufCMessage *message, tg_buf *out,
                      tg_error *err) {
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > TG_LIMIT_MESSAGE) {
        return tg_fail(err, TG_DATA, "%s: %zu bytes, at most %d can be sent",
                       row->wire->desc->short_name, size, TG_LIMIT_MESSAGE);
    }
    char *at = tg_buf_reserve(out, size);
    if (!at) return tg_fail_nomem(err, size);
    protobuf_c_message_pack(message, (uint8_t *)at);
    size_t items = 0;
    /* The peer would refuse it: better to say so where it was made. */
    if (tg_wire_check(row->wire, at, size, &items, err) != TG_OK) {
        if (err) err->status = TG_DATA;
        return TG_DATA;
    }
    out->len += size;
    out->data[out->len] = '\0';
    return TG_OK;
}

tg_status tg_msg_encode_in(tg_arena *arena, tg_msg_type type, const void *msg, tg_buf *out,
                           tg_error *err) {
    const tg_codec_row *row = row_of(type);
    if (!row) return tg_fail(err, TG_BUG, "message type %d is unknown", (int)type);
    tg_arena_reset(arena);
    ProtobufCMessage *message = row->encode(arena, msg);
    return message ? pack(row, message, out, err) : tg_fail_nomem(err, row->size);
}

tg_status tg_msg_encode(tg_msg_type type, const void *msg, tg_buf *out, tg_error *err) {
    tg_arena arena = {0};
    tg_status st = tg_msg_encode_in(&arena, type, msg, out, err);
    tg_arena_fini(&arena);
    return st;
}
