/* Hello, Welcome, the slot lists, Heartbeat, Error and Bye. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

#include <string.h>

static const tg_wire_field spec_fields[] = {
    [1] = {.cap = TG_LIMIT_NAME},
    [14] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [15] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [17] = {0},
};
static const tg_wire_message spec_wire = {&textgen__v1__env_spec__descriptor,
                                          TG_WIRE_FIELDS(spec_fields)};

static const tg_wire_field limits_fields[] = {[4] = {0}};
static const tg_wire_message limits_wire = {&textgen__v1__limits__descriptor,
                                            TG_WIRE_FIELDS(limits_fields)};

/* ---- EnvSpec -------------------------------------------------------------------------------- */

static void spec_decode(tg_block *b, const Textgen__V1__EnvSpec *in, tg_env_spec *out) {
    *out = (tg_env_spec){
        .env_id = tg_block_text(b, in->env_id),
        .config_digest = in->config_digest,
        .tokenizer_digest = in->tokenizer_digest,
        .vocab_size = in->vocab_size,
        .eos_id = in->eos_id,
        .pad_id = in->pad_id,
        .has_eos = in->has_eos,
        .max_prompt_length = in->max_prompt_length,
        .max_episode_length = in->max_episode_length,
        .terminate_on_eos = in->terminate_on_eos,
        .n_samples = {0, in->n_train, in->n_val, in->n_test},
        .n_rewards = in->n_reward_names,
        .n_metrics = in->n_metric_names,
        .deterministic = in->deterministic,
        .capacity = in->capacity,
    };
    out->reward_names = tg_block_texts(b, in->reward_names, in->n_reward_names);
    out->metric_names = tg_block_texts(b, in->metric_names, in->n_metric_names);
}

static Textgen__V1__EnvSpec *spec_encode(tg_arena *a, const tg_env_spec *in) {
    Textgen__V1__EnvSpec *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__env_spec__init(out);
    out->env_id = (char *)(uintptr_t)in->env_id;
    out->config_digest = in->config_digest;
    out->tokenizer_digest = in->tokenizer_digest;
    out->vocab_size = in->vocab_size;
    out->eos_id = in->eos_id;
    out->pad_id = in->pad_id;
    out->has_eos = in->has_eos;
    out->max_prompt_length = in->max_prompt_length;
    out->max_episode_length = in->max_episode_length;
    out->terminate_on_eos = in->terminate_on_eos;
    out->n_train = in->n_samples[TG_SPLIT_TRAIN];
    out->n_val = in->n_samples[TG_SPLIT_VAL];
    out->n_test = in->n_samples[TG_SPLIT_TEST];
    out->n_reward_names = in->n_rewards;
    out->reward_names = (char **)(uintptr_t)in->reward_names;
    out->n_metric_names = in->n_metrics;
    out->metric_names = (char **)(uintptr_t)in->metric_names;
    out->deterministic = in->deterministic;
    out->capacity = in->capacity;
    return out;
}

/* ---- Hello ---------------------------------------------------------------------------------- */

static tg_status hello_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    const Textgen__V1__Hello *in = from;
    tg_hello *out = to;
    if (in->role == TEXTGEN__V1__ROLE__ROLE_UNSPECIFIED)
        return tg_fail(err, TG_PROTOCOL, "Hello.role: missing");
    if (in->peer_uuid.len != 16)
        return tg_fail(err, TG_PROTOCOL, "Hello.peer_uuid: must have 16 bytes");
    *out = (tg_hello){
        .proto_major = in->proto_major,
        .proto_minor = in->proto_minor,
        .heartbeat_ms = in->heartbeat_ms,
        .role = (tg_role)in->role,
        .software = tg_block_text(b, in->software),
        .has_spec = in->spec != NULL,
        .n_capabilities = in->n_capabilities,
    };
    memcpy(out->peer_uuid, in->peer_uuid.data, 16);
    if (in->spec) spec_decode(b, in->spec, &out->spec);
    out->capabilities = tg_block_texts(b, in->capabilities, in->n_capabilities);
    return TG_OK;
}

static ProtobufCMessage *hello_encode(tg_arena *a, const void *from) {
    const tg_hello *in = from;
    Textgen__V1__Hello *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__hello__init(out);
    out->proto_major = in->proto_major;
    out->proto_minor = in->proto_minor;
    out->heartbeat_ms = in->heartbeat_ms;
    out->role = (Textgen__V1__Role)in->role;
    out->software = (char *)(uintptr_t)in->software;
    out->peer_uuid = (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)in->peer_uuid};
    out->n_capabilities = in->n_capabilities;
    out->capabilities = (char **)(uintptr_t)in->capabilities;
    if (in->has_spec && !(out->spec = spec_encode(a, &in->spec))) return NULL;
    return &out->base;
}

static const tg_wire_field hello_fields[] = {
    [3] = {.cap = TG_LIMIT_NAME},
    [5] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [6] = {.cap = 16, .unit = 16},
    [8] = {.sub = &spec_wire},
};
static const tg_wire_message hello_wire = {&textgen__v1__hello__descriptor,
                                           TG_WIRE_FIELDS(hello_fields)};
const tg_codec_row tg_codec_hello = {&hello_wire, sizeof(tg_hello), hello_decode, hello_encode};

/* ---- Welcome -------------------------------------------------------------------------------- */

static tg_status welcome_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__Welcome *in = from;
    tg_welcome *out = to;
    *out = (tg_welcome){
        .proto_minor = in->proto_minor,
        .heartbeat_ms = in->heartbeat_ms,
        .lease_ms = in->lease_ms,
        .session = in->session,
        .epoch = in->epoch,
        .software = tg_block_text(b, in->software),
        .has_spec = in->spec != NULL,
        .n_capabilities = in->n_capabilities,
    };
    if (in->limits) {
        out->limits = (tg_limits){in->limits->max_message, in->limits->max_slots,
                                  in->limits->max_batch, in->limits->max_tokens};
    }
    if (in->spec) spec_decode(b, in->spec, &out->spec);
    out->capabilities = tg_block_texts(b, in->capabilities, in->n_capabilities);
    return TG_OK;
}

static ProtobufCMessage *welcome_encode(tg_arena *a, const void *from) {
    const tg_welcome *in = from;
    Textgen__V1__Welcome *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__Limits *limits = tg_arena_alloc(a, sizeof *limits);
    if (!out || !limits) return NULL;
    textgen__v1__welcome__init(out);
    textgen__v1__limits__init(limits);
    limits->max_message = in->limits.max_message;
    limits->max_slots = in->limits.max_slots;
    limits->max_batch = in->limits.max_batch;
    limits->max_tokens = in->limits.max_tokens;
    out->limits = limits;
    out->proto_minor = in->proto_minor;
    out->heartbeat_ms = in->heartbeat_ms;
    out->lease_ms = in->lease_ms;
    out->session = in->session;
    out->epoch = in->epoch;
    out->software = (char *)(uintptr_t)in->software;
    out->n_capabilities = in->n_capabilities;
    out->capabilities = (char **)(uintptr_t)in->capabilities;
    if (in->has_spec && !(out->spec = spec_encode(a, &in->spec))) return NULL;
    return &out->base;
}

static const tg_wire_field welcome_fields[] = {
    [2] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [7] = {.sub = &limits_wire},
    [8] = {.cap = TG_LIMIT_NAME},
    [9] = {.sub = &spec_wire},
};
static const tg_wire_message welcome_wire = {&textgen__v1__welcome__descriptor,
                                             TG_WIRE_FIELDS(welcome_fields)};
const tg_codec_row tg_codec_welcome = {&welcome_wire, sizeof(tg_welcome), welcome_decode,
                                       welcome_encode};

/* ---- slot lists ----------------------------------------------------------------------------- */

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

static tg_status slots_opened_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__SlotsOpened *in = from;
    slots_decode(b, in->slots, in->n_slots, to);
    return TG_OK;
}

static ProtobufCMessage *slots_opened_encode(tg_arena *a, const void *from) {
    const tg_slot_list *in = from;
    Textgen__V1__SlotsOpened *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__slots_opened__init(out);
    out->n_slots = in->n;
    out->slots = (uint32_t *)(uintptr_t)in->slots;
    return &out->base;
}

static const tg_wire_field slot_list_fields[] = {[1] = {.cap = TG_LIMIT_SLOTS}};
static const tg_wire_message slots_opened_wire = {&textgen__v1__slots_opened__descriptor,
                                                  TG_WIRE_FIELDS(slot_list_fields)};
const tg_codec_row tg_codec_slots_opened = {&slots_opened_wire, sizeof(tg_slot_list),
                                            slots_opened_decode, slots_opened_encode};

static tg_status close_slots_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__CloseSlots *in = from;
    slots_decode(b, in->slots, in->n_slots, to);
    return TG_OK;
}

static ProtobufCMessage *close_slots_encode(tg_arena *a, const void *from) {
    const tg_slot_list *in = from;
    Textgen__V1__CloseSlots *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__close_slots__init(out);
    out->n_slots = in->n;
    out->slots = (uint32_t *)(uintptr_t)in->slots;
    return &out->base;
}

static const tg_wire_message close_slots_wire = {&textgen__v1__close_slots__descriptor,
                                                 TG_WIRE_FIELDS(slot_list_fields)};
const tg_codec_row tg_codec_close_slots = {&close_slots_wire, sizeof(tg_slot_list),
                                           close_slots_decode, close_slots_encode};

/* ---- Heartbeat, Error, Bye ------------------------------------------------------------------ */

static tg_status heartbeat_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)b;
    (void)err;
    const Textgen__V1__Heartbeat *in = from;
    *(tg_heartbeat *)to = (tg_heartbeat){in->epoch,       in->oldest_ms, in->completed,
                                         in->loop_lag_us, in->in_flight, in->draining};
    return TG_OK;
}

static ProtobufCMessage *heartbeat_encode(tg_arena *a, const void *from) {
    const tg_heartbeat *in = from;
    Textgen__V1__Heartbeat *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__heartbeat__init(out);
    out->epoch = in->epoch;
    out->in_flight = in->in_flight;
    out->oldest_ms = in->oldest_ms;
    out->completed = in->completed;
    out->loop_lag_us = in->loop_lag_us;
    out->draining = in->draining;
    return &out->base;
}

static const tg_wire_field heartbeat_fields[] = {[6] = {0}};
static const tg_wire_message heartbeat_wire = {&textgen__v1__heartbeat__descriptor,
                                               TG_WIRE_FIELDS(heartbeat_fields)};
const tg_codec_row tg_codec_heartbeat = {&heartbeat_wire, sizeof(tg_heartbeat), heartbeat_decode,
                                         heartbeat_encode};

static tg_status error_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__Error *in = from;
    *(tg_wire_error *)to = (tg_wire_error){(tg_code)in->code, tg_block_text(b, in->message),
                                           in->retryable, in->retry_after_ms};
    return TG_OK;
}

static ProtobufCMessage *error_encode(tg_arena *a, const void *from) {
    const tg_wire_error *in = from;
    Textgen__V1__Error *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__error__init(out);
    out->code = (Textgen__V1__Code)in->code;
    out->message = (char *)(uintptr_t)in->message;
    out->retryable = in->retryable;
    out->retry_after_ms = in->retry_after_ms;
    return &out->base;
}

static const tg_wire_field error_fields[] = {[2] = {.cap = TG_LIMIT_NOTE}, [4] = {0}};
static const tg_wire_message error_wire = {&textgen__v1__error__descriptor,
                                           TG_WIRE_FIELDS(error_fields)};
const tg_codec_row tg_codec_error = {&error_wire, sizeof(tg_wire_error), error_decode,
                                     error_encode};

static tg_status bye_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__Bye *in = from;
    *(tg_bye *)to = (tg_bye){tg_block_text(b, in->reason)};
    return TG_OK;
}

static ProtobufCMessage *bye_encode(tg_arena *a, const void *from) {
    const tg_bye *in = from;
    Textgen__V1__Bye *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__bye__init(out);
    out->reason = (char *)(uintptr_t)in->reason;
    return &out->base;
}

static const tg_wire_field bye_fields[] = {[1] = {.cap = TG_LIMIT_NOTE}};
static const tg_wire_message bye_wire = {&textgen__v1__bye__descriptor, TG_WIRE_FIELDS(bye_fields)};
const tg_codec_row tg_codec_bye = {&bye_wire, sizeof(tg_bye), bye_decode, bye_encode};
