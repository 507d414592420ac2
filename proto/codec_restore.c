/* Restore with its reply, and the state of slots. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

static tg_split split_of(Textgen__V1__Split split) {
    return split ? (tg_split)split : TG_SPLIT_TRAIN;
}

/* One reward per token, in both messages that carry an episode. */
static tg_status check_log(const char *what, size_t tokens_len, size_t rewards_len, tg_error *err) {
    if (rewards_len / 8 == tokens_len / 4) return TG_OK;
    return tg_fail(err, TG_PROTOCOL, "%s.rewards: %zu bytes for %zu tokens", what, rewards_len,
                   tokens_len / 4);
}

/* ---- Restore -------------------------------------------------------------------------------- */

static tg_status restore_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    const Textgen__V1__RestoreBatch *in = from;
    tg_restore_item *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__RestoreItem *x = in->items[i];
        tg_restore_item *out = TG_BLOCK_AT(items, i, scratch);
        tg_status st = check_log("RestoreItem", x->tokens.len, x->rewards.len, err);
        if (st != TG_OK) return st;
        *out = (tg_restore_item){
            .slot = x->slot,
            .episode = x->episode,
            .seed = x->seed,
            .sample = x->sample,
            .split = split_of(x->split),
            .reset_digest = x->reset_digest,
            .state_digest = x->state_digest,
        };
        out->tokens = tg_block_tokens(b, x->tokens, &out->n_tokens);
        out->rewards = tg_block_doubles(b, x->rewards, &out->n_tokens);
    }
    *(tg_restore_batch *)to = (tg_restore_batch){items, in->n_items};
    return TG_OK;
}

static ProtobufCMessage *restore_encode(tg_arena *a, const void *from) {
    const tg_restore_batch *in = from;
    Textgen__V1__RestoreBatch *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__RestoreItem **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__RestoreItem *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__restore_batch__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_restore_item *x = &in->items[i];
        textgen__v1__restore_item__init(list[i] = &items[i]);
        items[i].slot = x->slot;
        items[i].episode = x->episode;
        items[i].seed = x->seed;
        items[i].split = (Textgen__V1__Split)x->split;
        items[i].sample = x->sample;
        items[i].tokens = tg_blob_tokens(x->tokens, x->n_tokens);
        items[i].rewards = tg_blob_doubles(x->rewards, x->n_tokens);
        items[i].reset_digest = x->reset_digest;
        items[i].state_digest = x->state_digest;
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field restore_item_fields[] = {
    [6] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [7] = {.cap = TG_LIMIT_TOKENS * 8, .unit = 8},
    [9] = {0},
};
static const tg_wire_message restore_item_wire = {&textgen__v1__restore_item__descriptor,
                                                  TG_WIRE_FIELDS(restore_item_fields)};
static const tg_wire_field restore_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &restore_item_wire}};
static const tg_wire_message restore_wire = {&textgen__v1__restore_batch__descriptor,
                                             TG_WIRE_FIELDS(restore_fields)};
const tg_codec_row tg_codec_restore = {&restore_wire, sizeof(tg_restore_batch), restore_decode,
                                       restore_encode};

/* ---- RestoreReply --------------------------------------------------------------------------- */

static tg_status restore_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__RestoreReply *in = from;
    tg_restore_result *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__RestoreResult *x = in->items[i];
        tg_restore_result *r = TG_BLOCK_AT(items, i, scratch);
        *r = (tg_restore_result){
            .slot = x->slot,
            .episode = x->episode,
            .state_digest = x->state_digest,
            .code = (tg_code)x->code,
            .message = tg_block_text(b, x->message),
            .sample_id = tg_block_text(b, x->sample_id),
            .stop = (tg_stop)x->stop,
            .reward_status = (tg_reward_status)x->reward_status,
        };
        r->prompt = tg_block_tokens(b, x->prompt, &r->n_prompt);
    }
    *(tg_restore_reply *)to = (tg_restore_reply){items, in->n_items};
    return TG_OK;
}

static ProtobufCMessage *restore_reply_encode(tg_arena *a, const void *from) {
    const tg_restore_reply *in = from;
    Textgen__V1__RestoreReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__RestoreResult **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__RestoreResult *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__restore_reply__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_restore_result *x = &in->items[i];
        textgen__v1__restore_result__init(list[i] = &items[i]);
        items[i].slot = x->slot;
        items[i].episode = x->episode;
        items[i].code = (Textgen__V1__Code)x->code;
        items[i].message = (char *)(uintptr_t)x->message;
        items[i].state_digest = x->state_digest;
        items[i].sample_id = (char *)(uintptr_t)x->sample_id;
        items[i].prompt = tg_blob_tokens(x->prompt, x->n_prompt);
        items[i].stop = (Textgen__V1__StopReason)x->stop;
        items[i].reward_status = (Textgen__V1__RewardStatus)x->reward_status;
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field restore_result_fields[] = {
    [4] = {.cap = TG_LIMIT_NOTE},
    [6] = {.cap = TG_LIMIT_NAME},
    [7] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [9] = {0},
};
static const tg_wire_message restore_result_wire = {&textgen__v1__restore_result__descriptor,
                                                    TG_WIRE_FIELDS(restore_result_fields)};
static const tg_wire_field restore_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &restore_result_wire}};
static const tg_wire_message restore_reply_wire = {&textgen__v1__restore_reply__descriptor,
                                                   TG_WIRE_FIELDS(restore_reply_fields)};
const tg_codec_row tg_codec_restore_reply = {&restore_reply_wire, sizeof(tg_restore_reply),
                                             restore_reply_decode, restore_reply_encode};

/* ---- SnapshotReply -------------------------------------------------------------------------- */

static tg_status state_decode(tg_block *b, const Textgen__V1__SlotState *in, tg_snapshot *out,
                              tg_error *err) {
    tg_status st = check_log("SlotState", in->tokens.len, in->rewards.len, err);
    if (st != TG_OK) return st;
    *out = (tg_snapshot){
        .slot = in->slot,
        .live = in->live,
        .episode = in->episode,
        .seed = in->seed,
        .sample = in->sample,
        .state_digest = in->state_digest,
        .split = split_of(in->split),
        .terminated = in->terminated,
        .truncated = in->truncated,
        .stop = (tg_stop)in->stop,
        .reward_status = (tg_reward_status)in->reward_status,
    };
    out->sample_id = tg_block_text(b, in->sample_id);
    out->prompt = tg_block_tokens(b, in->prompt, &out->n_prompt);
    out->tokens = tg_block_tokens(b, in->tokens, &out->n_tokens);
    out->rewards = tg_block_doubles(b, in->rewards, &out->n_tokens);
    return TG_OK;
}

static tg_status snapshot_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    const Textgen__V1__SnapshotReply *in = from;
    tg_snapshot *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        tg_status st = state_decode(b, in->items[i], TG_BLOCK_AT(items, i, scratch), err);
        if (st != TG_OK) return st;
    }
    *(tg_snapshot_reply *)to = (tg_snapshot_reply){items, in->n_items};
    return TG_OK;
}

static void state_encode(const tg_snapshot *in, Textgen__V1__SlotState *out) {
    textgen__v1__slot_state__init(out);
    out->slot = in->slot;
    out->live = in->live;
    out->episode = in->episode;
    out->seed = in->seed;
    out->split = (Textgen__V1__Split)in->split;
    out->sample = in->sample;
    out->sample_id = (char *)(uintptr_t)in->sample_id;
    out->prompt = tg_blob_tokens(in->prompt, in->n_prompt);
    out->tokens = tg_blob_tokens(in->tokens, in->n_tokens);
    out->rewards = tg_blob_doubles(in->rewards, in->n_tokens);
    out->state_digest = in->state_digest;
    out->terminated = in->terminated;
    out->truncated = in->truncated;
    out->stop = (Textgen__V1__StopReason)in->stop;
    out->reward_status = (Textgen__V1__RewardStatus)in->reward_status;
}

static ProtobufCMessage *snapshot_reply_encode(tg_arena *a, const void *from) {
    const tg_snapshot_reply *in = from;
    Textgen__V1__SnapshotReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__SlotState **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__SlotState *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__snapshot_reply__init(out);
    for (size_t i = 0; i < in->n; i++) state_encode(&in->items[i], list[i] = &items[i]);
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field state_fields[] = {
    [7] = {.cap = TG_LIMIT_NAME},
    [8] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [9] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [10] = {.cap = TG_LIMIT_TOKENS * 8, .unit = 8},
    [15] = {0},
};
static const tg_wire_message state_wire = {&textgen__v1__slot_state__descriptor,
                                           TG_WIRE_FIELDS(state_fields)};
static const tg_wire_field snapshot_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &state_wire}};
static const tg_wire_message snapshot_reply_wire = {&textgen__v1__snapshot_reply__descriptor,
                                                    TG_WIRE_FIELDS(snapshot_reply_fields)};
const tg_codec_row tg_codec_snapshot_reply = {&snapshot_reply_wire, sizeof(tg_snapshot_reply),
                                              snapshot_reply_decode, snapshot_reply_encode};
