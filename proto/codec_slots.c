/* The messages that are lists of slots: OpenSlots, SlotsOpened, CloseSlots, SnapshotRequest, Cancel. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

#include <string.h>

static void slots_decode(tg_block *b, const uint32_t *slots, size_t n, tg_slot_list *out) {
    uint32_t *copy = tg_block_take(b, n, sizeof *copy);
    if (copy) memcpy(copy, slots, n * sizeof *copy);
    *out = (tg_slot_list){copy, n};
}

static tg_status open_slots_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    const Textgen__V1__OpenSlots *in = from;
    if (in->n != 0 && in->n != in->n_slots) {
        return tg_fail(err, TG_PROTOCOL, "OpenSlots.n: %u, but %zu slots are named", in->n,
                       in->n_slots);
    }
    slots_decode(b, in->slots, in->n_slots, to);
    return TG_OK;
}

static ProtobufCMessage *open_slots_encode(tg_arena *a, const void *from) {
    const tg_slot_list *in = from;
    Textgen__V1__OpenSlots *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__open_slots__init(out);
    out->n = (uint32_t)in->n;
    out->n_slots = in->n;
    out->slots = (uint32_t *)(uintptr_t)in->slots;
    return &out->base;
}

static const tg_wire_field open_slots_fields[] = {[2] = {.cap = TG_LIMIT_SLOTS}};
static const tg_wire_message open_slots_wire = {&textgen__v1__open_slots__descriptor,
                                                TG_WIRE_FIELDS(open_slots_fields)};
const tg_codec_row tg_codec_open_slots = {&open_slots_wire, sizeof(tg_slot_list), open_slots_decode,
                                          open_slots_encode};

static const tg_wire_field slot_list_fields[] = {[1] = {.cap = TG_LIMIT_SLOTS}};

/* The others hold nothing but the list: `name` in our table, `Type` and `stem` as generated. */
#define SLOT_LIST(name, Type, stem)                                                                \
    static tg_status name##_decode(tg_block *b, const void *from, void *to, tg_error *err) {       \
        (void)err;                                                                                 \
        const Textgen__V1__##Type *in = from;                                                      \
        slots_decode(b, in->slots, in->n_slots, to);                                               \
        return TG_OK;                                                                              \
    }                                                                                              \
    static ProtobufCMessage *name##_encode(tg_arena *a, const void *from) {                        \
        const tg_slot_list *in = from;                                                             \
        Textgen__V1__##Type *out = tg_arena_alloc(a, sizeof *out);                                 \
        if (!out) return NULL;                                                                     \
        textgen__v1__##stem##__init(out);                                                          \
        out->n_slots = in->n;                                                                      \
        out->slots = (uint32_t *)(uintptr_t)in->slots;                                             \
        return &out->base;                                                                         \
    }                                                                                              \
    static const tg_wire_message name##_wire = {&textgen__v1__##stem##__descriptor,                \
                                                TG_WIRE_FIELDS(slot_list_fields)};                 \
    const tg_codec_row tg_codec_##name = {&name##_wire, sizeof(tg_slot_list), name##_decode,       \
                                          name##_encode};

SLOT_LIST(slots_opened, SlotsOpened, slots_opened)
SLOT_LIST(close_slots, CloseSlots, close_slots)
SLOT_LIST(snapshot, SnapshotRequest, snapshot_request)
SLOT_LIST(cancel, Cancel, cancel)
