/* Samples of a split, metrics over generations, scores of finished texts. */
#include "common/base/check.h"
#include "proto/codec_family.h"
#include "proto/limits.h"
#include "proto/textgen.pb-c.h"

static tg_split split_of(Textgen__V1__Split split) {
    return split ? (tg_split)split : TG_SPLIT_TRAIN;
}

/* ---- SampleRange, Samples ------------------------------------------------------------------- */

static tg_status sample_range_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)b;
    (void)err;
    const Textgen__V1__SampleRange *in = from;
    *(tg_sample_range *)to = (tg_sample_range){split_of(in->split), in->first, in->n};
    return TG_OK;
}

static ProtobufCMessage *sample_range_encode(tg_arena *a, const void *from) {
    const tg_sample_range *in = from;
    Textgen__V1__SampleRange *out = tg_arena_alloc(a, sizeof *out);
    if (!out) return NULL;
    textgen__v1__sample_range__init(out);
    out->split = (Textgen__V1__Split)in->split;
    out->first = in->first;
    out->n = in->n;
    return &out->base;
}

static const tg_wire_field sample_range_fields[] = {[3] = {0}};
static const tg_wire_message sample_range_wire = {&textgen__v1__sample_range__descriptor,
                                                  TG_WIRE_FIELDS(sample_range_fields)};
const tg_codec_row tg_codec_sample_range = {&sample_range_wire, sizeof(tg_sample_range),
                                            sample_range_decode, sample_range_encode};

static tg_status samples_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__Samples *in = from;
    tg_sample *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__Sample *x = in->items[i];
        tg_sample *out = TG_BLOCK_AT(items, i, scratch);
        *out = (tg_sample){.index = x->index, .n_references = x->n_references};
        out->id = tg_block_text(b, x->id);
        out->prompt_text = tg_block_text(b, x->prompt_text);
        out->meta_json = tg_block_text(b, x->meta_json);
        out->references = tg_block_texts(b, x->references, x->n_references);
        out->prompt = tg_block_tokens(b, x->prompt, &out->n_prompt);
    }
    *(tg_samples *)to = (tg_samples){items, in->n_items};
    return TG_OK;
}

static ProtobufCMessage *samples_encode(tg_arena *a, const void *from) {
    const tg_samples *in = from;
    Textgen__V1__Samples *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__Sample **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__Sample *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__samples__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_sample *x = &in->items[i];
        textgen__v1__sample__init(list[i] = &items[i]);
        items[i].index = x->index;
        items[i].id = (char *)(uintptr_t)x->id;
        items[i].prompt_text = (char *)(uintptr_t)x->prompt_text;
        items[i].meta_json = (char *)(uintptr_t)x->meta_json;
        items[i].n_references = x->n_references;
        items[i].references = (char **)(uintptr_t)x->references;
        items[i].prompt = tg_blob_tokens(x->prompt, x->n_prompt);
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field sample_fields[] = {
    [2] = {.cap = TG_LIMIT_NAME},
    [3] = {.cap = TG_LIMIT_TEXT},
    [4] = {.cap = TG_LIMIT_REFERENCES, .each = TG_LIMIT_TEXT},
    [5] = {.cap = TG_LIMIT_TEXT},
    [6] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
};
static const tg_wire_message sample_wire = {&textgen__v1__sample__descriptor,
                                            TG_WIRE_FIELDS(sample_fields)};
static const tg_wire_field samples_fields[] = {[1] = {.cap = TG_LIMIT_BATCH, .sub = &sample_wire}};
static const tg_wire_message samples_wire = {&textgen__v1__samples__descriptor,
                                             TG_WIRE_FIELDS(samples_fields)};
const tg_codec_row tg_codec_samples = {&samples_wire, sizeof(tg_samples), samples_decode,
                                       samples_encode};

/* ---- MetricRequest -------------------------------------------------------------------------- */

static tg_status metric_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__MetricRequest *in = from;
    tg_generation *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__Generation *x = in->items[i];
        tg_generation *out = TG_BLOCK_AT(items, i, scratch);
        *out = (tg_generation){.sample = x->sample};
        out->tokens = tg_block_tokens(b, x->tokens, &out->n_tokens);
        if (x->has_text) out->text = tg_block_text(b, x->text);
    }
    *(tg_metric_request *)to = (tg_metric_request){split_of(in->split), items, in->n_items,
                                                   in->deadline_ms, in->want_text};
    return TG_OK;
}

static ProtobufCMessage *metric_encode(tg_arena *a, const void *from) {
    const tg_metric_request *in = from;
    Textgen__V1__MetricRequest *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__Generation **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__Generation *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__metric_request__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_generation *x = &in->items[i];
        textgen__v1__generation__init(list[i] = &items[i]);
        items[i].sample = x->sample;
        items[i].tokens = tg_blob_tokens(x->tokens, x->n_tokens);
        items[i].has_text = x->text != NULL;
        items[i].text = (char *)(uintptr_t)x->text;
    }
    out->split = (Textgen__V1__Split)in->split;
    out->n_items = in->n;
    out->items = list;
    out->deadline_ms = in->deadline_ms;
    out->want_text = in->want_text;
    return &out->base;
}

static const tg_wire_field generation_fields[] = {
    [2] = {.cap = TG_LIMIT_TOKENS * 4, .unit = 4, .ids = true},
    [3] = {.cap = TG_LIMIT_TEXT},
    [4] = {0},
};
static const tg_wire_message generation_wire = {&textgen__v1__generation__descriptor,
                                                TG_WIRE_FIELDS(generation_fields)};
static const tg_wire_field metric_fields[] = {
    [2] = {.cap = TG_LIMIT_GENERATIONS, .sub = &generation_wire}, [4] = {0}};
static const tg_wire_message metric_wire = {&textgen__v1__metric_request__descriptor,
                                            TG_WIRE_FIELDS(metric_fields)};
const tg_codec_row tg_codec_metric = {&metric_wire, sizeof(tg_metric_request), metric_decode,
                                      metric_encode};

/* ---- MetricReply ---------------------------------------------------------------------------- */

static tg_status metric_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__MetricReply *in = from;
    tg_metric_value *values = tg_block_take(b, in->n_values, sizeof *values), scratch;
    for (size_t i = 0; i < in->n_values; i++) {
        const Textgen__V1__MetricValue *x = in->values[i];
        tg_metric_value *out = TG_BLOCK_AT(values, i, scratch);
        *out = (tg_metric_value){.has_corpus = x->has_corpus, .corpus = x->corpus};
        out->key = tg_block_text(b, x->key);
        out->error = tg_block_text(b, x->error);
        out->samples = tg_block_doubles(b, x->samples, &out->n_samples);
    }
    const char **texts = tg_block_texts(b, in->texts, in->n_texts);
    *(tg_metric_reply *)to = (tg_metric_reply){values, in->n_values, texts, in->n_texts};
    return TG_OK;
}

static ProtobufCMessage *metric_reply_encode(tg_arena *a, const void *from) {
    const tg_metric_reply *in = from;
    Textgen__V1__MetricReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__MetricValue **list = tg_arena_array(a, in->n_values, sizeof *list);
    Textgen__V1__MetricValue *values = tg_arena_array(a, in->n_values, sizeof *values);
    if (!out || !list || !values) return NULL;
    textgen__v1__metric_reply__init(out);
    for (size_t i = 0; i < in->n_values; i++) {
        const tg_metric_value *x = &in->values[i];
        textgen__v1__metric_value__init(list[i] = &values[i]);
        values[i].key = (char *)(uintptr_t)x->key;
        values[i].has_corpus = x->has_corpus;
        values[i].corpus = x->corpus;
        values[i].samples = tg_blob_doubles(x->samples, x->n_samples);
        values[i].error = (char *)(uintptr_t)x->error;
    }
    out->n_values = in->n_values;
    out->values = list;
    out->n_texts = in->n_texts;
    out->texts = (char **)(uintptr_t)in->texts;
    return &out->base;
}

static const tg_wire_field metric_value_fields[] = {
    [1] = {.cap = TG_LIMIT_NAME},
    [4] = {.cap = TG_LIMIT_GENERATIONS * 8, .unit = 8},
    [5] = {.cap = TG_LIMIT_NOTE},
};
static const tg_wire_message metric_value_wire = {&textgen__v1__metric_value__descriptor,
                                                  TG_WIRE_FIELDS(metric_value_fields)};
static const tg_wire_field metric_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_METRICS, .sub = &metric_value_wire},
    [2] = {.cap = TG_LIMIT_GENERATIONS, .each = TG_LIMIT_TEXT},
};
static const tg_wire_message metric_reply_wire = {&textgen__v1__metric_reply__descriptor,
                                                  TG_WIRE_FIELDS(metric_reply_fields)};
const tg_codec_row tg_codec_metric_reply = {&metric_reply_wire, sizeof(tg_metric_reply),
                                            metric_reply_decode, metric_reply_encode};

/* ---- ScoreRequest --------------------------------------------------------------------------- */

static tg_status score_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__ScoreRequest *in = from;
    tg_score_item *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__ScoreItem *x = in->items[i];
        tg_score_item *out = TG_BLOCK_AT(items, i, scratch);
        *out = (tg_score_item){.id = x->id, .n_references = x->n_references};
        out->prompt = tg_block_text(b, x->prompt);
        out->completion = tg_block_text(b, x->completion);
        out->meta_json = tg_block_text(b, x->meta_json);
        out->references = tg_block_texts(b, x->references, x->n_references);
    }
    const char *fn = tg_block_text(b, in->fn);
    *(tg_score_request *)to =
        (tg_score_request){fn, items, in->n_items, in->deadline_ms, in->ranked};
    return TG_OK;
}

static ProtobufCMessage *score_encode(tg_arena *a, const void *from) {
    const tg_score_request *in = from;
    Textgen__V1__ScoreRequest *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__ScoreItem **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__ScoreItem *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__score_request__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_score_item *x = &in->items[i];
        textgen__v1__score_item__init(list[i] = &items[i]);
        items[i].id = x->id;
        items[i].prompt = (char *)(uintptr_t)x->prompt;
        items[i].completion = (char *)(uintptr_t)x->completion;
        items[i].meta_json = (char *)(uintptr_t)x->meta_json;
        items[i].n_references = x->n_references;
        items[i].references = (char **)(uintptr_t)x->references;
    }
    out->fn = (char *)(uintptr_t)in->fn;
    out->n_items = in->n;
    out->items = list;
    out->deadline_ms = in->deadline_ms;
    out->ranked = in->ranked;
    return &out->base;
}

static const tg_wire_field score_item_fields[] = {
    [2] = {.cap = TG_LIMIT_TEXT},
    [3] = {.cap = TG_LIMIT_TEXT},
    [4] = {.cap = TG_LIMIT_REFERENCES, .each = TG_LIMIT_TEXT},
    [5] = {.cap = TG_LIMIT_TEXT},
};
static const tg_wire_message score_item_wire = {&textgen__v1__score_item__descriptor,
                                                TG_WIRE_FIELDS(score_item_fields)};
static const tg_wire_field score_fields[] = {
    [1] = {.cap = TG_LIMIT_NAME},
    [2] = {.cap = TG_LIMIT_BATCH, .sub = &score_item_wire},
    [4] = {0},
};
static const tg_wire_message score_wire = {&textgen__v1__score_request__descriptor,
                                           TG_WIRE_FIELDS(score_fields)};
const tg_codec_row tg_codec_score = {&score_wire, sizeof(tg_score_request), score_decode,
                                     score_encode};

/* ---- ScoreReply ----------------------------------------------------------------------------- */

static tg_status score_reply_decode(tg_block *b, const void *from, void *to, tg_error *err) {
    (void)err;
    const Textgen__V1__ScoreReply *in = from;
    tg_score_result *items = tg_block_take(b, in->n_items, sizeof *items), scratch;
    for (size_t i = 0; i < in->n_items; i++) {
        const Textgen__V1__ScoreResult *x = in->items[i];
        tg_score_result *out = TG_BLOCK_AT(items, i, scratch);
        *out = (tg_score_result){.id = x->id,
                                 .status = (tg_reward_status)x->status,
                                 .value = x->value,
                                 .n_components = x->n_components};
        out->message = tg_block_text(b, x->message);
        out->components = tg_block_components(b, x->components, x->n_components);
    }
    *(tg_score_reply *)to = (tg_score_reply){items, in->n_items};
    return TG_OK;
}

static ProtobufCMessage *score_reply_encode(tg_arena *a, const void *from) {
    const tg_score_reply *in = from;
    Textgen__V1__ScoreReply *out = tg_arena_alloc(a, sizeof *out);
    Textgen__V1__ScoreResult **list = tg_arena_array(a, in->n, sizeof *list);
    Textgen__V1__ScoreResult *items = tg_arena_array(a, in->n, sizeof *items);
    if (!out || !list || !items) return NULL;
    textgen__v1__score_reply__init(out);
    for (size_t i = 0; i < in->n; i++) {
        const tg_score_result *x = &in->items[i];
        textgen__v1__score_result__init(list[i] = &items[i]);
        items[i].id = x->id;
        items[i].status = (Textgen__V1__RewardStatus)x->status;
        items[i].value = x->value;
        items[i].message = (char *)(uintptr_t)x->message;
        items[i].n_components = x->n_components;
        items[i].components = tg_encode_components(a, x->components, x->n_components);
        if (!items[i].components) return NULL;
    }
    out->n_items = in->n;
    out->items = list;
    return &out->base;
}

static const tg_wire_field score_result_fields[] = {
    [4] = {.cap = TG_LIMIT_NOTE},
    [5] = {.cap = TG_LIMIT_COMPONENTS, .sub = &tg_wire_component},
};
static const tg_wire_message score_result_wire = {&textgen__v1__score_result__descriptor,
                                                  TG_WIRE_FIELDS(score_result_fields)};
static const tg_wire_field score_reply_fields[] = {
    [1] = {.cap = TG_LIMIT_BATCH, .sub = &score_result_wire}};
static const tg_wire_message score_reply_wire = {&textgen__v1__score_reply__descriptor,
                                                 TG_WIRE_FIELDS(score_reply_fields)};
const tg_codec_row tg_codec_score_reply = {&score_reply_wire, sizeof(tg_score_reply),
                                           score_reply_decode, score_reply_encode};
