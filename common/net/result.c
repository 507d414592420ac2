#include "common/net/result.h"

#include <string.h>

/* Bytes into the buffer, which has room for them. */
static void *put(tg_buf *b, const void *bytes, size_t len) {
    char *at = b->data + b->len;
    if (len) memcpy(at, bytes, len);
    b->len += len;
    return at;
}

static const char *put_text(tg_buf *b, const char *text) {
    return text && *text ? put(b, text, strlen(text) + 1) : "";
}

static size_t text_size(const char *text) {
    return text && *text ? strlen(text) + 1 : 0;
}

static bool make_room(tg_buf *b, size_t len) {
    tg_buf_reset(b);
    return len == 0 || tg_buf_reserve(b, len) != NULL;
}

bool tg_reset_result_copy(tg_reset_result *to, tg_buf *bytes, const tg_reset_result *from) {
    size_t prompt = from->n_prompt * sizeof *from->prompt;
    if (!make_room(bytes, prompt + text_size(from->message) + text_size(from->prompt_text) +
                              text_size(from->sample_id))) {
        *to = (tg_reset_result){.slot = from->slot, .episode = from->episode};
        to->code = TG_CODE_INTERNAL;
        to->message = "out of memory for the result";
        to->prompt_text = to->sample_id = "";
        return false;
    }
    *to = *from;
    to->prompt = prompt ? put(bytes, from->prompt, prompt) : NULL;
    to->message = put_text(bytes, from->message);
    to->prompt_text = put_text(bytes, from->prompt_text);
    to->sample_id = put_text(bytes, from->sample_id);
    return true;
}

static size_t components_size(const tg_step_result *r) {
    size_t size = r->n_components * sizeof *r->components;
    for (size_t i = 0; i < r->n_components; i++) size += text_size(r->components[i].name);
    return size;
}

static const tg_component *put_components(tg_buf *b, const tg_step_result *r) {
    if (r->n_components == 0) return NULL;
    tg_component *c = put(b, r->components, r->n_components * sizeof *c);
    for (size_t i = 0; i < r->n_components; i++) c[i].name = put_text(b, c[i].name);
    return c;
}

bool tg_step_result_copy(tg_step_result *to, tg_buf *bytes, const tg_step_result *from) {
    size_t rewards = from->rewards ? from->n_applied * sizeof *from->rewards : 0;
    if (!make_room(bytes, rewards + components_size(from) + text_size(from->message) +
                              text_size(from->text))) {
        *to = (tg_step_result){.slot = from->slot, .episode = from->episode, .step = from->step};
        to->code = TG_CODE_INTERNAL;
        to->message = "out of memory for the result";
        to->text = "", to->stop = TG_STOP_ABORTED;
        return false;
    }
    *to = *from;
    to->rewards = rewards ? put(bytes, from->rewards, rewards) : NULL;
    to->components = put_components(bytes, from);
    to->message = put_text(bytes, from->message);
    to->text = put_text(bytes, from->text);
    return true;
}

size_t tg_snapshot_bytes(const tg_snapshot *x) {
    return 128 + x->n_prompt * 4 + x->n_tokens * 12;
}

size_t tg_restore_result_bytes(const tg_restore_result *x) {
    return 128 + x->n_prompt * 4;
}
