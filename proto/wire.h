/* Checks a payload against its schema and the caps of limits.h before anything is allocated for it.
 * Internal to proto/.
 *
 * Stricter than proto3 asks, so that memory stays bounded and a wrong peer is noticed: a singular
 * field sent twice, a known field with another wire type, an unknown enum value, text that is not
 * UTF-8 or holds a NUL are all refused. Unknown fields (a later minor version) are skipped, up to a
 * cap. */
#ifndef TG_PROTO_WIRE_H
#define TG_PROTO_WIRE_H

#include "common/base/check.h"
#include "common/base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_wire_message tg_wire_message;

/* What a field may hold, beside what its descriptor says. */
typedef struct tg_wire_field {
    uint32_t cap;               /* bytes of a string or blob; when repeated: entries */
    uint32_t each;              /* repeated strings: bytes of one */
    uint8_t unit;               /* blobs: length is a multiple of this */
    bool ids;                   /* blobs of u32: token ids, below 2^31 */
    const tg_wire_message *sub; /* messages */
} tg_wire_field;

struct tg_wire_message {
    const ProtobufCMessageDescriptor *desc;
    const tg_wire_field *fields; /* by field number; [0] unused */
    uint32_t max_id;
};
#define TG_WIRE_FIELDS(array) .fields = array, .max_id = TG_COUNT_OF(array) - 1

/* Counts every repeated entry and unknown field into *items. TG_PROTOCOL names the field. */
tg_status tg_wire_check(const tg_wire_message *message, const void *bytes, size_t len,
                        size_t *items, tg_error *err) TG_MUST_CHECK;

#endif
