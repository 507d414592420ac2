/* Frame headers: written and read byte by byte, so neither alignment nor padding matters. */
#include "proto/frame.h"

#include "common/base/hash.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <string.h>

static void put16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *p, uint32_t v) {
    put16(p, (uint16_t)v);
    put16(p + 2, (uint16_t)(v >> 16));
}

static void put64(uint8_t *p, uint64_t v) {
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint16_t get16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p) {
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

tg_status tg_frame_encode_in(tg_arena *arena, const tg_frame *head, const void *msg, tg_buf *out,
                             tg_error *err) {
    size_t start = out->len;
    if (!tg_buf_reserve(out, TG_FRAME_HEADER)) return tg_fail_nomem(err, TG_FRAME_HEADER);
    out->len += TG_FRAME_HEADER;
    tg_status st = tg_msg_encode_in(arena, head->type, msg, out, err);
    size_t payload_len = out->len - start - TG_FRAME_HEADER;
    if (st == TG_OK && payload_len > TG_LIMIT_MESSAGE - TG_FRAME_HEADER) {
        st = tg_fail(err, TG_DATA, "%s: %zu bytes, at most %d can be sent", tg_msg_name(head->type),
                     payload_len, TG_LIMIT_MESSAGE - TG_FRAME_HEADER);
    }
    if (st != TG_OK) {
        out->len = start;
        return st;
    }
    uint8_t *h = (uint8_t *)out->data + start;
    put32(h, TG_FRAME_MAGIC);
    put16(h + 4, (uint16_t)head->type);
    put16(h + 6, head->flags);
    put64(h + 8, head->session);
    put64(h + 16, head->seq);
    put32(h + 24, (uint32_t)payload_len);
    put32(h + 28, tg_crc32c(0, h + TG_FRAME_HEADER, payload_len));
    return TG_OK;
}

tg_status tg_frame_encode(const tg_frame *head, const void *msg, tg_buf *out, tg_error *err) {
    tg_arena arena = {0};
    tg_status st = tg_frame_encode_in(&arena, head, msg, out, err);
    tg_arena_fini(&arena);
    return st;
}

tg_status tg_frame_parse(const void *bytes, size_t len, tg_frame *head, const void **payload,
                         size_t *payload_len, tg_error *err) {
    *head = (tg_frame){0};
    *payload = NULL;
    *payload_len = 0;
    const uint8_t *h = bytes;
    if (len < TG_FRAME_HEADER) {
        return tg_fail(err, TG_PROTOCOL, "frame of %zu bytes is shorter than its header (%d)", len,
                       TG_FRAME_HEADER);
    }
    if (len > TG_LIMIT_MESSAGE) {
        return tg_fail(err, TG_PROTOCOL, "frame of %zu bytes, at most %d are allowed", len,
                       TG_LIMIT_MESSAGE);
    }
    if (get32(h) != TG_FRAME_MAGIC) {
        return tg_fail(err, TG_PROTOCOL,
                       "frame does not begin with TXG1: not textgen, or another major version");
    }
    head->flags = get16(h + 6);
    head->session = get64(h + 8);
    head->seq = get64(h + 16);
    unsigned type = get16(h + 4);
    if (type < TG_MSG_HELLO || type > TG_MSG_CANCEL) {
        return tg_fail(err, TG_PROTOCOL, "message type %u is unknown", type);
    }
    head->type = (tg_msg_type)type;
    if (get32(h + 24) != len - TG_FRAME_HEADER) {
        return tg_fail(err, TG_PROTOCOL, "%s: header says %u payload bytes, frame has %zu",
                       tg_msg_name(head->type), get32(h + 24), len - TG_FRAME_HEADER);
    }
    if (get32(h + 28) != tg_crc32c(0, h + TG_FRAME_HEADER, len - TG_FRAME_HEADER)) {
        return tg_fail(err, TG_PROTOCOL, "%s: checksum does not match, payload was damaged",
                       tg_msg_name(head->type));
    }
    *payload = h + TG_FRAME_HEADER;
    *payload_len = len - TG_FRAME_HEADER;
    return TG_OK;
}

tg_status tg_frame_decode(const void *bytes, size_t len, tg_frame *head, void **msg,
                          tg_error *err) {
    return tg_frame_decode_from(NULL, bytes, len, head, msg, err);
}

tg_status tg_frame_decode_from(tg_msg_pool *pool, const void *bytes, size_t len, tg_frame *head,
                               void **msg, tg_error *err) {
    const void *payload;
    size_t payload_len;
    *msg = NULL;
    tg_status st = tg_frame_parse(bytes, len, head, &payload, &payload_len, err);
    return st == TG_OK ? tg_msg_decode_from(pool, head->type, payload, payload_len, msg, err) : st;
}
