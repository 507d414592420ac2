/* Every length is compared with what is there before it is believed; nothing is copied but answers of bounded size. */
#include "common/net/zmtp.h"

#include <string.h>

enum { VERSION_AT = 10, MECHANISM_AT = 12, MECHANISM = 20, PING_CONTEXT = 16 };

/* ---- greeting ------------------------------------------------------------------------------- */

void tg_zmtp_put_greeting(uint8_t out[TG_ZMTP_GREETING]) {
    memset(out, 0, TG_ZMTP_GREETING);
    out[0] = 0xff;
    out[8] = 1; /* as libzmq: an old peer reads a long length of 1 here */
    out[9] = 0x7f;
    out[VERSION_AT] = 3;
    out[VERSION_AT + 1] = 1;
    memcpy(out + MECHANISM_AT, "NULL", 4);
}

tg_zmtp_result tg_zmtp_check_greeting(const uint8_t *b, size_t n) {
    static const uint8_t null[MECHANISM] = "NULL";
    if (n > 0 && b[0] != 0xff) return TG_ZMTP_BAD;
    if (n > 9 && b[9] != 0x7f) return TG_ZMTP_BAD;
    if (n > VERSION_AT && b[VERSION_AT] < 3) return TG_ZMTP_BAD;
    for (size_t i = MECHANISM_AT; i < n && i < MECHANISM_AT + MECHANISM; i++)
        if (b[i] != null[i - MECHANISM_AT]) return TG_ZMTP_BAD;
    return n < TG_ZMTP_GREETING ? TG_ZMTP_PART : TG_ZMTP_OK;
}

/* ---- frames --------------------------------------------------------------------------------- */

static uint64_t big_endian(const uint8_t *b, size_t n) {
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++) x = x << 8 | b[i];
    return x;
}

tg_zmtp_result tg_zmtp_read_frame(const uint8_t *b, size_t n, size_t max_body, tg_zmtp_frame *out) {
    *out = (tg_zmtp_frame){0};
    if (n == 0) return TG_ZMTP_PART;
    uint8_t flags = out->flags = b[0];
    bool command = flags & TG_ZMTP_COMMAND;
    if (flags & ~(TG_ZMTP_MORE | TG_ZMTP_LONG | TG_ZMTP_COMMAND)) return TG_ZMTP_BAD;
    if (command && flags & TG_ZMTP_MORE) return TG_ZMTP_BAD;
    size_t head = flags & TG_ZMTP_LONG ? 9 : 2;
    if (n < head) return TG_ZMTP_PART;
    uint64_t len = big_endian(b + 1, head - 1);
    if (len > (command ? TG_ZMTP_MAX_COMMAND : max_body)) return TG_ZMTP_BAD;
    out->body = b + head;
    out->len = (size_t)len;
    out->total = head + (size_t)len;
    return n < out->total ? TG_ZMTP_PART : TG_ZMTP_OK;
}

size_t tg_zmtp_put_head(uint8_t out[TG_ZMTP_HEAD], uint8_t flags, size_t len) {
    if (len < 256) {
        out[0] = flags;
        out[1] = (uint8_t)len;
        return 2;
    }
    out[0] = flags | TG_ZMTP_LONG;
    for (int i = 0; i < 8; i++) out[1 + i] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
    return 9;
}

/* ---- commands ------------------------------------------------------------------------------- */

static uint8_t *put_property(uint8_t *at, const char *name, const char *value) {
    size_t n = strlen(name), v = strlen(value);
    *at++ = (uint8_t)n;
    memcpy(at, name, n);
    at += n;
    memset(at, 0, 3);
    at[3] = (uint8_t)v;
    memcpy(at + 4, value, v);
    return at + 4 + v;
}

static size_t put_command(uint8_t *out, const uint8_t *end) {
    size_t len = (size_t)(end - out) - 2;
    tg_zmtp_put_head(out, TG_ZMTP_COMMAND, len);
    return len + 2;
}

size_t tg_zmtp_put_ready(uint8_t out[TG_ZMTP_READY], bool router) {
    uint8_t *at = out + 2;
    memcpy(at, "\5READY", 6);
    at = put_property(at + 6, "Socket-Type", router ? "ROUTER" : "DEALER");
    return put_command(out, put_property(at, "Identity", ""));
}

static bool is_command(const uint8_t *body, size_t len, const char *name) {
    size_t n = strlen(name);
    return len >= n + 1 && body[0] == n && !memcmp(body + 1, name, n);
}

static bool equals(const uint8_t *bytes, size_t len, const char *word) {
    return len == strlen(word) && !memcmp(bytes, word, len);
}

/* Property names are not case sensitive. */
static bool names_type(const uint8_t *name, size_t len) {
    static const char type[] = "socket-type";
    if (len != sizeof type - 1) return false;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = name[i] >= 'A' && name[i] <= 'Z' ? (uint8_t)(name[i] + 32) : name[i];
        if (c != (uint8_t)type[i]) return false;
    }
    return true;
}

bool tg_zmtp_is_ready(const uint8_t *body, size_t len, bool router) {
    if (!is_command(body, len, "READY")) return false;
    bool fits = false;
    for (size_t at = 6; at < len;) {
        size_t n = body[at++];
        if (n == 0 || len - at < n + 4) return false;
        const uint8_t *name = body + at;
        uint64_t v = big_endian(name + n, 4);
        at += n + 4;
        if (v > len - at) return false;
        const uint8_t *value = body + at;
        if (names_type(name, n))
            fits = equals(value, (size_t)v, "DEALER") || equals(value, (size_t)v, "ROUTER") ||
                   equals(value, (size_t)v, router ? "REQ" : "REP");
        at += (size_t)v;
    }
    return fits;
}

size_t tg_zmtp_put_answer(uint8_t out[TG_ZMTP_READY], const uint8_t *body, size_t len) {
    if (!is_command(body, len, "PING") || len < 7 || len - 7 > PING_CONTEXT) return 0;
    memcpy(out + 2, "\4PONG", 5);
    memcpy(out + 7, body + 7, len - 7); /* behind the two bytes of its time to live */
    return put_command(out, out + 7 + len - 7);
}
