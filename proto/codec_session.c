/* Hello, Welcome, Heartbeat, Error and Bye. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

#include <string.h>

static const tg_wire_field spec_fields[] = {
    [1] = {.cap = TG_LIMIT_NAME},
    [14] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [15] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [18] = {.cap = 4 * TG_LIMIT_TOKENS, .unit = 4, .ids = true},
    [24] = {0},
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
        .has_context_start = in->has_context_start,
        .n_tokens = in->n_tokens,
        .compat = in->compat,
        .pad_right = in->pad_right,
        .has_reward = in->has_reward,
        .batched_reward = in->batched_reward,
    };
    out->context_start = tg_block_tokens(b, in->context_start, &out->n_context_start);
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
    out->context_start = tg_blob_tokens(in->context_start, in->n_context_start);
    out->has_context_start = in->has_context_start;
    out->n_tokens = in->n_tokens;
    out->compat = in->compat;
    out->pad_right = in->pad_right;
    out->has_reward = in->has_reward;
    out->batched_reward = in->batched_reward;
    return out;
}

/* ---- RewardFn, resume tokens --------------------------------------------------------------- */

static const tg_wire_field fn_fields[] = {
    [1] = {.cap = TG_LIMIT_NAME}, [2] = {.cap = TG_LIMIT_NAME}, [5] = {0}};
static const tg_wire_message fn_wire = {&textgen__v1__reward_fn__descriptor,
                                        TG_WIRE_FIELDS(fn_fields)};

static const tg_reward_fn *functions_decode(tg_block *b, Textgen__V1__RewardFn *const *in,
                                            size_t n) {
    tg_reward_fn *out = tg_block_take(b, n, sizeof *out), scratch;
    for (size_t i = 0; i < n; i++) {
        *TG_BLOCK_AT(out, i, scratch) = (tg_reward_fn){
            .name = tg_block_text(b, in[i]->name),
            .version = tg_block_text(b, in[i]->version),
            .deterministic = in[i]->deterministic,
            .max_batch = in[i]->max_batch,
            .concurrency = in[i]->concurrency,
        };
    }
    return out;
}

static Textgen__V1__RewardFn **functions_encode(tg_arena *a, const tg_reward_fn *in, size_t n) {
    Textgen__V1__RewardFn **list = tg_arena_array(a, n, sizeof *list);
    Textgen__V1__RewardFn *out = tg_arena_array(a, n, sizeof *out);
    if (!list || !out) return NULL;
    for (size_t i = 0; i < n; i++) {
        textgen__v1__reward_fn__init(list[i] = &out[i]);
        out[i].name = (char *)(uintptr_t)in[i].name;
        out[i].version = (char *)(uintptr_t)in[i].version;
        out[i].deterministic = in[i].deterministic;
        out[i].max_batch = in[i].max_batch;
        out[i].concurrency = in[i].concurrency;
    }
    return list;
}

/* Absent or 16 bytes (the unit of the field's rule). */
static bool token_decode(ProtobufCBinaryData blob, uint8_t out[16]) {
    if (blob.len != 16) return false;
    memcpy(out, blob.data, 16);
    return true;
}

static ProtobufCBinaryData token_encode(bool has, const uint8_t token[16]) {
    return has ? (ProtobufCBinaryData){16, (uint8_t *)(uintptr_t)token} : (ProtobufCBinaryData){0};
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
    out->resume_session = in->resume_session;
    out->has_resume_token = token_decode(in->resume_token, out->resume_token);
    out->n_functions = in->n_functions;
    out->functions = functions_decode(b, in->functions, in->n_functions);
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
    out->resume_session = in->resume_session;
    out->resume_token = token_encode(in->has_resume_token, in->resume_token);
    out->n_functions = in->n_functions;
    out->functions = functions_encode(a, in->functions, in->n_functions);
    return out->functions ? &out->base : NULL;
}

static const tg_wire_field hello_fields[] = {
    [3] = {.cap = TG_LIMIT_NAME},   [5] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [6] = {.cap = 16, .unit = 16},  [8] = {.sub = &spec_wire},
    [10] = {.cap = 16, .unit = 16}, [11] = {.cap = TG_LIMIT_FUNCTIONS, .sub = &fn_wire},
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
    out->has_resume_token = token_decode(in->resume_token, out->resume_token);
    out->resumed = in->resumed;
    out->credits = in->credits;
    out->n_functions = in->n_functions;
    out->functions = functions_decode(b, in->functions, in->n_functions);
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
    out->resume_token = token_encode(in->has_resume_token, in->resume_token);
    out->resumed = in->resumed;
    out->credits = in->credits;
    out->n_functions = in->n_functions;
    out->functions = functions_encode(a, in->functions, in->n_functions);
    return out->functions ? &out->base : NULL;
}

static const tg_wire_field welcome_fields[] = {
    [2] = {.cap = TG_LIMIT_NAMES, .each = TG_LIMIT_NAME},
    [7] = {.sub = &limits_wire},
    [8] = {.cap = TG_LIMIT_NAME},
    [9] = {.sub = &spec_wire},
    [10] = {.cap = 16, .unit = 16},
    [13] = {.cap = TG_LIMIT_FUNCTIONS, .sub = &fn_wire},
};
static const tg_wire_message welcome_wire = {&textgen__v1__welcome__descriptor,
                                             TG_WIRE_FIELDS(welcome_fields)};
const tg_codec_row tg_codec_welcome = {&welcome_wire, sizeof(tg_welcome), welcome_decode,
                                       welcome_encode};

/* ---- Heartbeat, Error, Bye ------------------------------------------------------------------ */

static tg_status heartbeat_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)b;
    (void)err;
    const Textgen__V1__Heartbeat *in = from;
    *(tg_heartbeat *)to =
        (tg_heartbeat){in->epoch,     in->oldest_ms, in->completed, in->loop_lag_us,
                       in->in_flight, in->draining,  in->slots,     in->steps};
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
    out->slots = in->slots;
    out->steps = in->steps;
    return &out->base;
}

static const tg_wire_field heartbeat_fields[] = {[8] = {0}};
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
