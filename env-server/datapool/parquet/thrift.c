/* The compact protocol: varints, zigzag, field ids as differences. */
#include "env-server/datapool/parquet/thrift.h"

enum { MAX_DEPTH = 32 };

static unsigned char byte(tg_thrift *t) {
    if (t->at >= t->end) {
        t->failed = true;
        return 0;
    }
    return *t->at++;
}

static uint64_t varint(tg_thrift *t) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char b = byte(t);
        if (shift < 64) value |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return t->failed ? 0 : value;
    }
    t->failed = true;
    return 0;
}

static int64_t zigzag(uint64_t v) {
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

bool tg_thrift_field(tg_thrift *t, int *id, tg_thrift_type *type) {
    unsigned char b = byte(t);
    *type = (tg_thrift_type)(b & 0x0f);
    if (t->failed || *type == TG_THRIFT_STOP) return false;
    int64_t next = b >> 4 ? *id + (b >> 4) : zigzag(varint(t));
    if (*type > TG_THRIFT_STRUCT || next < 0 || next > 32767) t->failed = true;
    *id = t->failed ? 0 : (int)next;
    return !t->failed;
}

static void advance(tg_thrift *t, uint64_t n) {
    if (n > (uint64_t)(t->end - t->at))
        t->failed = true;
    else
        t->at += n;
}

/* in_list: a truth value is a byte of its own there. */
static void skip(tg_thrift *t, tg_thrift_type type, bool in_list, unsigned depth) {
    tg_thrift_type element;
    int id = 0;
    if (depth > MAX_DEPTH) t->failed = true;
    if (t->failed) return;
    switch (type) {
    case TG_THRIFT_TRUE:
    case TG_THRIFT_FALSE:
        if (in_list) (void)byte(t);
        break;
    case TG_THRIFT_I8: (void)byte(t); break;
    case TG_THRIFT_I16:
    case TG_THRIFT_I32:
    case TG_THRIFT_I64: (void)varint(t); break;
    case TG_THRIFT_DOUBLE: advance(t, 8); break;
    case TG_THRIFT_BINARY: advance(t, varint(t)); break;
    case TG_THRIFT_LIST:
    case TG_THRIFT_SET:
        for (size_t n = tg_thrift_list(t, type, &element); n && !t->failed; n--)
            skip(t, element, true, depth + 1);
        break;
    case TG_THRIFT_MAP: {
        uint64_t n = varint(t);
        unsigned char types = n ? byte(t) : 0;
        for (; n && !t->failed; n--) {
            skip(t, (tg_thrift_type)(types >> 4), true, depth + 1);
            skip(t, (tg_thrift_type)(types & 0x0f), true, depth + 1);
        }
        break;
    }
    case TG_THRIFT_STRUCT:
        while (tg_thrift_field(t, &id, &element)) skip(t, element, false, depth + 1);
        break;
    default: t->failed = true;
    }
}

void tg_thrift_skip(tg_thrift *t, tg_thrift_type type) {
    skip(t, type, false, 0);
}

int64_t tg_thrift_int(tg_thrift *t, tg_thrift_type type) {
    if (type == TG_THRIFT_I8) return (signed char)byte(t);
    if (type == TG_THRIFT_I16 || type == TG_THRIFT_I32 || type == TG_THRIFT_I64)
        return zigzag(varint(t));
    tg_thrift_skip(t, type);
    return 0;
}

bool tg_thrift_bool(tg_thrift *t, tg_thrift_type type) {
    if (type != TG_THRIFT_TRUE && type != TG_THRIFT_FALSE) tg_thrift_skip(t, type);
    return type == TG_THRIFT_TRUE;
}

const char *tg_thrift_binary(tg_thrift *t, tg_thrift_type type, size_t *len) {
    *len = 0;
    if (type != TG_THRIFT_BINARY) {
        tg_thrift_skip(t, type);
        return "";
    }
    uint64_t n = varint(t);
    const char *text = (const char *)t->at;
    advance(t, n);
    if (t->failed) return "";
    *len = (size_t)n;
    return text;
}

size_t tg_thrift_list(tg_thrift *t, tg_thrift_type type, tg_thrift_type *element) {
    *element = TG_THRIFT_STOP;
    if (type != TG_THRIFT_LIST && type != TG_THRIFT_SET) {
        tg_thrift_skip(t, type);
        return 0;
    }
    unsigned char head = byte(t);
    uint64_t n = head >> 4 == 15 ? varint(t) : head >> 4;
    *element = (tg_thrift_type)(head & 0x0f);
    if (n > (uint64_t)(t->end - t->at)) t->failed = true; /* an element has at least a byte */
    return t->failed ? 0 : (size_t)n;
}
