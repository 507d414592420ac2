/* Reset and Step with their replies, and the reward components they carry. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

/* ---- Component ------------------------------------------------------------------------------ */

static const tg_wire_field component_fields[] = {[1] = {.cap = TG_LIMIT_NAME}, [3] = {0}};
const tg_wire_message tg_wire_component = {&textgen__v1__component__descriptor,
                                           TG_WIRE_FIELDS(component_fields)};

const tg_component *tg_block_components(tg_block *b, Textgen__V1__Component *const *in, size_t n) {
    tg_component *out = tg_block_take(b, n, sizeof *out), scratch;
    for (size_t i = 0; i < n; i++) {
        *TG_BLOCK_AT(out, i, scratch) = (tg_component){tg_block_text(b, in[i]->name), in[i]->value,
                                                       (tg_reward_status)in[i]->status};
    }
    return out;
}

Textgen__V1__Component **tg_encode_components(tg_arena *a, const tg_component *in, size_t n) {
    Textgen__V1__Component **list = tg_arena_array(a, n, sizeof *list);
    Textgen__V1__Component *out = tg_arena_array(a, n, sizeof *out);
    if (!list || !out) return NULL;
    for (size_t i = 0; i < n; i++) {
        textgen__v1__component__init(list[i] = &out[i]);
        out[i].name = (char *)(uintptr_t)in[i].name;
        out[i].value = in[i].value;
        out[i].status = (Textgen__V1__RewardStatus)in[i].status;
    }
    return list;
}

/* ---- Reset ---------------------------------------------------------------------------------- */

static tg_status reset_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__ResetBatch *in = from;
    tg_reset_item *items = tg_block_take(b, in->n_items, sizeof *items);
    for (size_t i = 0; items && i < in->n_items; i++) {
        const Textgen__V1__ResetItem *x = in->items[i];
        items[i] = (tg_reset_item){
            .slot = x->slot,
            .episode = x->episode,
            .seed = x->seed,
            .split = x->split ? (tg_split)x->split : TG_SPLIT_TRAIN,
            .has_sample = x->has_sample,
            .sample = x->sample,
        };
    }
    *(tg_reset_batch *)to = (tg_reset_batch){items, in->n_items, in->want_text};
    return TG_OK;
}

static ProtobufCMessage *reset_encode(tg_arena *a, const void *from) {
    const tg_reset_batch *in = from;
    Textgen__V1__ResetBatch *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__ResetItem **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__ResetItem *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__reset_batch__init(out);
    for (size_t i = 0; i < in->n; i++) {
        textgen__v1__reset_item__init(list[i] = &items[i]);
        items[i].slot = in->items[i].slot;
        items[i].episode = in->items[i].episode;
        items[i].seed = in->items[i].seed;
        items[i].split = (Textgen__V1__Split)in->items[i].split;
        items[i].has_sample = in->items[i].has_sample;
        items[i].sample = in->items[i].sample;
    }
    out->n_items = in->n;
    out->items = list;
    out->want_text = in->want_text;
    return &out->base;
}

static const tg_wire_field reset_item_fields[] = {[6] = {0}};
static const tg_wire_message reset_item_wire = {&textgen__v1__reset_item__descriptor,
                                                TG_WIRE_FIELDS(reset_item_fields)};
static const tg_wire_field reset_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &reset_item_wire}, [2] = {0}};
static const tg_wire_message reset_wire = {&textgen__v1__reset_batch__descriptor,
                                           TG_WIRE_FIELDS(reset_fields)};
const tg_codec_row tg_codec_reset = {&reset_wire, sizeof(tg_reset_batch), reset_decode,
                                     reset_encode};

/* ---- ResetReply ----------------------------------------------------------------------------- */

static void reset_result_decode(tg_block *b, const Textgen__V1__ResetResult *in,
                                tg_reset_result *out) {
    *out = (tg_reset_result){
        .slot = in->slot,
        .episode = in->episode,
        .sample = in->sample,
        .state_digest = in->state_digest,
        .code = (tg_code)in->code,
    };
    out->message = tg_block_text(b, in->message);
    out->prompt_text = tg_block_text(b, in->prompt_text);
    out->sample_id = tg_block_text(b, in->sample_id);
    out->prompt = tg_block_tokens(b, in->prompt, &out->n_prompt);
}

static tg_status reset_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__ResetReply *in = from;
    tg_reset_result *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++)
        reset_result_decode(b, in->items[i], TG_BLOCK_AT(items, i, scratch));
    *(tg_reset_reply *)to = (tg_reset_reply){items, in->n_items};
    return TG_OK;
}

static ProtobufCMessage *reset_reply_encode(tg_arena *a, const void *from) {
    const tg_reset_reply *in = from;
    Textgen__V1__ResetReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__ResetResult **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__ResetResult *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__reset_reply__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_reset_result *x = &in->items[i];
        textgen__v1__reset_result__init(list[i] = &items[i]);
        items[i].slot = x->slot;
        items[i].episode = x->episode;
        items[i].code = (Textgen__V1__Code)x->code;
        items[i].message = (char *)(uintptr_t)x->message;
        items[i].sample = x->sample;
        items[i].prompt = tg_blob_tokens(x->prompt, x->n_prompt);
        items[i].prompt_text = (char *)(uintptr_t)x->prompt_text;
        items[i].state_digest = x->state_digest;
        items[i].sample_id = (char *)(uintptr_t)x->sample_id;
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field reset_result_fields[] = {
    [4] = {.cap = TG_LIMIT_NOTE},
    [6] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [7] = {.cap = TG_LIMIT_TEXT},
    [9] = {.cap = TG_LIMIT_NAME},
};
static const tg_wire_message reset_result_wire = {&textgen__v1__reset_result__descriptor,
                                                  TG_WIRE_FIELDS(reset_result_fields)};
static const tg_wire_field reset_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &reset_result_wire}};
static const tg_wire_message reset_reply_wire = {&textgen__v1__reset_reply__descriptor,
                                                 TG_WIRE_FIELDS(reset_reply_fields)};
const tg_codec_row tg_codec_reset_reply = {&reset_reply_wire, sizeof(tg_reset_reply),
                                           reset_reply_decode, reset_reply_encode};

/* ---- Step ----------------------------------------------------------------------------------- */

static tg_status step_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__StepBatch *in = from;
    tg_step_item *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__StepItem *x = in->items[i];
        tg_step_item *out = TG_BLOCK_AT(items, i, scratch);
        *out = (tg_step_item){.slot = x->slot, .episode = x->episode, .step = x->step};
        out->tokens = tg_block_tokens(b, x->tokens, &out->n_tokens);
    }
    *(tg_step_batch *)to = (tg_step_batch){items, in->n_items, in->deadline_ms, in->want_text};
    return TG_OK;
}

static ProtobufCMessage *step_encode(tg_arena *a, const void *from) {
    const tg_step_batch *in = from;
    Textgen__V1__StepBatch *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__StepItem **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__StepItem *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__step_batch__init(out);
    for (size_t i = 0; i < in->n; i++) {
        textgen__v1__step_item__init(list[i] = &items[i]);
        items[i].slot = in->items[i].slot;
        items[i].episode = in->items[i].episode;
        items[i].step = in->items[i].step;
        items[i].tokens = tg_blob_tokens(in->items[i].tokens, in->items[i].n_tokens);
    }
    out->n_items = in->n;
    out->items = list;
    out->deadline_ms = in->deadline_ms;
    out->want_text = in->want_text;
    return &out->base;
}

static const tg_wire_field step_item_fields[] = {
    [4] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true}};
static const tg_wire_message step_item_wire = {&textgen__v1__step_item__descriptor,
                                               TG_WIRE_FIELDS(step_item_fields)};
static const tg_wire_field step_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &step_item_wire}, [3] = {0}};
static const tg_wire_message step_wire = {&textgen__v1__step_batch__descriptor,
                                          TG_WIRE_FIELDS(step_fields)};
const tg_codec_row tg_codec_step = {&step_wire, sizeof(tg_step_batch), step_decode, step_encode};

/* ---- StepReply ------------------------------------------------------------------------------ */

static tg_status step_result_decode(tg_block *b, const Textgen__V1__StepResult *in,
                                    tg_step_result *out, tg_error *err) {
    if (in->rewards.len != (uint64_t)in->n_applied * sizeof(double)) {
        return tg_fail(err, TG_PROTOCOL, "StepResult.rewards: %zu bytes for %u applied tokens",
                       in->rewards.len, in->n_applied);
    }
    *out = (tg_step_result){
        .slot = in->slot,
        .episode = in->episode,
        .step = in->step,
        .expected_step = in->expected_step,
        .n_applied = in->n_applied,
        .code = (tg_code)in->code,
        .reward_status = (tg_reward_status)in->reward_status,
        .terminated = in->terminated,
        .truncated = in->truncated,
        .replayed = in->replayed,
        .stop = (tg_stop)in->stop,
        .state_digest = in->state_digest,
        .n_components = in->n_components,
    };
    size_t n_rewards;
    out->message = tg_block_text(b, in->message);
    out->text = tg_block_text(b, in->text);
    out->rewards = tg_block_doubles(b, in->rewards, &n_rewards);
    out->components = tg_block_components(b, in->components, in->n_components);
    return TG_OK;
}

static tg_status step_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    const Textgen__V1__StepReply *in = from;
    tg_step_result *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        tg_status st = step_result_decode(b, in->items[i], TG_BLOCK_AT(items, i, scratch), err);
        if (st != TG_OK) return st;
    }
    *(tg_step_reply *)to = (tg_step_reply){items, in->n_items};
    return TG_OK;
}

static bool step_result_encode(tg_arena *a, const tg_step_result *in,
                               Textgen__V1__StepResult *out) {
    textgen__v1__step_result__init(out);
    out->slot = in->slot;
    out->episode = in->episode;
    out->step = in->step;
    out->code = (Textgen__V1__Code)in->code;
    out->message = (char *)(uintptr_t)in->message;
    out->n_applied = in->n_applied;
    out->rewards = tg_blob_doubles(in->rewards, in->n_applied);
    out->reward_status = (Textgen__V1__RewardStatus)in->reward_status;
    out->terminated = in->terminated;
    out->truncated = in->truncated;
    out->stop = (Textgen__V1__StopReason)in->stop;
    out->state_digest = in->state_digest;
    out->replayed = in->replayed;
    out->text = (char *)(uintptr_t)in->text;
    out->expected_step = in->expected_step;
    out->n_components = in->n_components;
    out->components = tg_encode_components(a, in->components, in->n_components);
    return out->components != NULL;
}

static ProtobufCMessage *step_reply_encode(tg_arena *a, const void *from) {
    const tg_step_reply *in = from;
    Textgen__V1__StepReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__StepResult **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__StepResult *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__step_reply__init(out);
    for (size_t i = 0; i < in->n; i++) {
        list[i] = &items[i];
        if (!step_result_encode(a, &in->items[i], &items[i])) return NULL;
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field step_result_fields[] = {
    [5] = {.cap = TG_LIMIT_NOTE},
    [7] = {.cap = TG_LIMIT_TOKENS * 8, .unit = 8},
    [14] = {.cap = TG_LIMIT_TEXT},
    [15] = {.cap = TG_LIMIT_COMPONENTS, .sub = &tg_wire_component},
    [16] = {0},
};
static const tg_wire_message step_result_wire = {&textgen__v1__step_result__descriptor,
                                                 TG_WIRE_FIELDS(step_result_fields)};
static const tg_wire_field step_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &step_result_wire}};
static const tg_wire_message step_reply_wire = {&textgen__v1__step_reply__descriptor,
                                                TG_WIRE_FIELDS(step_reply_fields)};
const tg_codec_row tg_codec_step_reply = {&step_reply_wire, sizeof(tg_step_reply),
                                          step_reply_decode, step_reply_encode};
