/* A walk over the protobuf wire format, driven by the generated descriptors and our tables of caps.
 * It allocates nothing and trusts nothing; the recursion is as deep as the schema, which has no
 * cycles (three levels). */
#include "proto/wire.h"

#include "common/base/check.h"
#include "proto/limits.h"

#include <stdbool.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_BYTES = 2, WIRE_32BIT = 5 };
enum { MAX_FIELDS = 32 };

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

/* One key and its value. */
typedef struct entry {
    uint32_t id;
    unsigned wire_type;
    uint64_t number;     /* varint */
    const uint8_t *data; /* bytes */
    size_t len;
} entry;

static bool read_varint(cursor *c, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (c->at == c->end) return false;
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1) return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_bytes(cursor *c, uint64_t len, entry *e) {
    if (len > (uint64_t)(c->end - c->at)) return false;
    e->data = c->at;
    e->len = (size_t)len;
    c->at += len;
    return true;
}

static bool read_entry(cursor *c, entry *e) {
    uint64_t key;
    const uint8_t *start = c->at;
    *e = (entry){0};
    if (!read_varint(c, &key) || c->at - start > 5) return false; /* 29 bits and the wire type */
    if (key >> 3 == 0 || key >> 3 > (1u << 29) - 1) return false;
    e->id = (uint32_t)(key >> 3);
    e->wire_type = key & 7;
    switch (e->wire_type) {
    case WIRE_VARINT: return read_varint(c, &e->number);
    case WIRE_64BIT: return read_bytes(c, 8, e);
    case WIRE_32BIT: return read_bytes(c, 4, e);
    case WIRE_BYTES: return read_varint(c, &e->number) && read_bytes(c, e->number, e);
    default: return false; /* groups are not part of proto3 */
    }
}

/* Strict UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF) without NUL. */
static bool text_valid(const uint8_t *s, size_t len) {
    size_t i = 0;
    while (i < len) {
        uint8_t c = s[i];
        if (c < 0x80) {
            if (c == 0) return false;
            i++;
            continue;
        }
        size_t more = c >= 0xc2 && c <= 0xdf   ? 1
                      : c >= 0xe0 && c <= 0xef ? 2
                      : c >= 0xf0 && c <= 0xf4 ? 3
                                               : 0;
        if (more == 0 || len - i <= more) return false;
        uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (s[i + 1] < low || s[i + 1] > high) return false;
        for (size_t k = 2; k <= more; k++) {
            if ((s[i + k] & 0xc0) != 0x80) return false;
        }
        i += more + 1;
    }
    return true;
}

static tg_status bad(tg_error *err, const tg_wire_message *m, const ProtobufCFieldDescriptor *f,
                     const char *what) {
    return tg_fail(err, TG_PROTOCOL, "%s.%s: %s", m->desc->short_name, f->name, what);
}

static tg_status over(tg_error *err, const tg_wire_message *m, const ProtobufCFieldDescriptor *f,
                      uint64_t found, const char *unit, uint64_t cap) {
    return tg_fail(err, TG_PROTOCOL, "%s.%s: %llu %s, at most %llu are allowed",
                   m->desc->short_name, f->name, (unsigned long long)found, unit,
                   (unsigned long long)cap);
}

static unsigned wire_type_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return WIRE_BYTES;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64: return WIRE_64BIT;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32: return WIRE_32BIT;
    default: return WIRE_VARINT;
    }
}

static bool enum_known(const ProtobufCFieldDescriptor *f, uint64_t number) {
    return number <= INT32_MAX &&
           protobuf_c_enum_descriptor_get_value(f->descriptor, (int)number) != NULL;
}

/* Packed numbers: how many there are, each well formed. */
static bool count_packed(const entry *e, size_t *count) {
    cursor c = {e->data, e->data + e->len};
    uint64_t ignored;
    for (*count = 0; c.at < c.end; ++*count) {
        if (!read_varint(&c, &ignored)) return false;
    }
    return true;
}

static bool ids_valid(const entry *e) {
    uint8_t high = 0;
    for (size_t i = 3; i < e->len; i += 4) high |= e->data[i];
    return !(high & 0x80);
}

static tg_status check_value(const tg_wire_message *m, const ProtobufCFieldDescriptor *f,
                             const entry *e, size_t *items, tg_error *err) {
    const tg_wire_field *rule = &m->fields[f->id];
    bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
    switch (f->type) {
    case PROTOBUF_C_TYPE_ENUM:
        return enum_known(f, e->number) ? TG_OK
                                        : bad(err, m, f, "unknown value of the enumeration");
    case PROTOBUF_C_TYPE_STRING: {
        uint32_t cap = repeated ? rule->each : rule->cap;
        if (e->len > cap) return over(err, m, f, e->len, "bytes", cap);
        return text_valid(e->data, e->len) ? TG_OK
                                           : bad(err, m, f, "not UTF-8 text, or with a NUL in it");
    }
    case PROTOBUF_C_TYPE_BYTES:
        if (e->len > rule->cap) return over(err, m, f, e->len, "bytes", rule->cap);
        if (e->len % rule->unit) return bad(err, m, f, "length is not a whole number of entries");
        return rule->ids && !ids_valid(e) ? bad(err, m, f, "a token id is 2^31 or more") : TG_OK;
    case PROTOBUF_C_TYPE_MESSAGE: return tg_wire_check(rule->sub, e->data, e->len, items, err);
    default: return TG_OK;
    }
}

static tg_status check_entry(const tg_wire_message *m, const ProtobufCFieldDescriptor *f,
                             const entry *e, uint32_t *seen, size_t *items, tg_error *err) {
    const tg_wire_field *rule = &m->fields[f->id];
    bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
    unsigned wanted = wire_type_of(f->type);
    size_t count = 1;
    bool packed = repeated && wanted == WIRE_VARINT && e->wire_type == WIRE_BYTES;
    if (packed) {
        if (!count_packed(e, &count)) return bad(err, m, f, "packed numbers are cut off");
    } else if (e->wire_type != wanted) {
        return bad(err, m, f, "has another wire type");
    }
    if (!repeated && seen[f->id]) return bad(err, m, f, "sent twice");
    seen[f->id] += (uint32_t)count;
    if (repeated) {
        if (seen[f->id] > rule->cap) return over(err, m, f, seen[f->id], "entries", rule->cap);
        *items +=
            packed ? count / 32 + 1 : 1; /* a packed number costs 8 bytes, not a whole entry */
        if (*items > TG_LIMIT_ITEMS)
            return over(err, m, f, *items, "entries in all", TG_LIMIT_ITEMS);
    }
    return packed ? TG_OK : check_value(m, f, e, items, err);
}

tg_status tg_wire_check(const tg_wire_message *m, const void *bytes, size_t len, size_t *items,
                        tg_error *err) {
    TG_ASSERT(m->max_id < MAX_FIELDS);
    uint32_t seen[MAX_FIELDS] = {0};
    uint32_t unknown = 0;
    cursor c = {bytes, (const uint8_t *)bytes + len};
    while (c.at < c.end) {
        entry e;
        if (!read_entry(&c, &e)) {
            return tg_fail(err, TG_PROTOCOL, "%s: cut off or malformed field", m->desc->short_name);
        }
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(m->desc, e.id);
        if (!f) {
            if (++unknown > TG_LIMIT_UNKNOWN) {
                return tg_fail(err, TG_PROTOCOL, "%s: more than %d unknown fields",
                               m->desc->short_name, TG_LIMIT_UNKNOWN);
            }
            *items += 1;
            continue;
        }
        TG_ASSERT(f->id <= m->max_id); /* every field of the schema has its row */
        tg_status st = check_entry(m, f, &e, seen, items, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}
