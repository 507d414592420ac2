/* The text of a slot's context, as its rewards see it. A context that grows token by token is decoded as it grows, so a step costs
 * the same at any length; short ones are decoded anew, which is quicker.
 *
 * Invariant: s->text is tg_env_decode of the first text_tokens actions, whichever way it was made. While the stream is in use, the
 * first text_stable bytes of s->text are what it has let go of. */
#include "env-server/env/slot_internal.h"

#include "common/base/check.h"

#include <string.h>

enum { SHORT = 48 }; /* actions; below, a stream does not pay */

/* The context has max_episode_length places, so start tokens are pushed out at its end, as in RL4LMs. */
static size_t first_place(const tg_env *env, size_t n) {
    size_t total = env->context_start.n + n, places = env->spec.max_episode_length;
    return total > places ? total - places : 0;
}

static tg_status decode_whole(const tg_env *env, tg_slot *s, size_t n, tg_error *err) {
    size_t from = first_place(env, n);
    s->streamed = SIZE_MAX;
    return tg_env_decode(env, s->context.data + from, env->context_start.n + n - from, &s->text,
                         err);
}

static tg_status put(const tg_env *env, tg_slot *s, size_t place, tg_error *err) {
    int32_t id = s->context.data[place];
    if (id >= env->n_tokens) return TG_OK; /* only the model's padded vocabulary has it */
    return tg_decode_stream_put(s->stream, id, &s->text, err);
}

/* An empty stream that has seen what the context starts with. */
static tg_status restart(const tg_env *env, tg_slot *s, tg_error *err) {
    tg_status st = TG_OK;
    if (!s->stream) st = tg_decode_stream_create(&s->stream, env->tokenizer, TG_ENV_DECODE, err);
    if (st == TG_OK && !s->spare)
        st = tg_decode_stream_create(&s->spare, env->tokenizer, TG_ENV_DECODE, err);
    tg_buf_reset(&s->text);
    if (st == TG_OK) st = tg_decode_stream_end(s->stream, &s->text, err); /* of an older text */
    tg_buf_reset(&s->text);
    for (size_t i = 0; i < env->context_start.n && st == TG_OK; i++) st = put(env, s, i, err);
    s->text_stable = s->text.len;
    if (st == TG_OK) s->streamed = 0;
    return st;
}

static tg_status decode_growing(const tg_env *env, tg_slot *s, size_t n, tg_error *err) {
    tg_status st = TG_OK;
    if (s->streamed > n) st = restart(env, s, err); /* also when there is none yet */
    s->text.len = s->text_stable;
    for (; st == TG_OK && s->streamed < n; s->streamed++)
        st = put(env, s, env->context_start.n + s->streamed, err);
    s->text_stable = s->text.len;
    if (st == TG_OK) st = tg_decode_stream_peek(s->stream, s->spare, &s->text, err);
    if (st == TG_OK && !s->text.data) tg_buf_puts(&s->text, ""); /* an empty text is a text */
    if (st == TG_OK && s->text.data) s->text.data[s->text.len] = '\0';
    return st == TG_OK && s->text.failed ? tg_fail_nomem(err, n) : st;
}

tg_status tg_slot_text(const tg_env *env, tg_slot *s, size_t n, tg_error *err) {
    if (s->text_tokens == n) return TG_OK;
    s->text_tokens = SIZE_MAX;
    bool whole = n < SHORT || first_place(env, n) > 0;
    tg_status st = whole ? decode_whole(env, s, n, err) : decode_growing(env, s, n, err);
    if (st == TG_OK)
        s->text_tokens = n;
    else
        s->streamed = SIZE_MAX;
    return st;
}

tg_status tg_slot_text_before(const tg_env *env, tg_slot *s, size_t n, tg_error *err) {
    tg_status st = tg_slot_text(env, s, n, err);
    if (st != TG_OK) return st;
    tg_buf_reset(&s->shorter);
    tg_buf_append(&s->shorter, s->text.data, s->text.len);
    return s->shorter.failed ? tg_fail_nomem(err, s->text.len) : TG_OK;
}

const char *tg_slot_text_for_wire(tg_slot *s) {
    if (!memchr(s->text.data, 0, s->text.len)) return s->text.data;
    tg_buf_reset(&s->shown);
    for (size_t i = 0; i < s->text.len; i++) {
        if (s->text.data[i])
            tg_buf_putc(&s->shown, s->text.data[i]);
        else
            tg_buf_puts(&s->shown, "\xEF\xBF\xBD");
    }
    return s->shown.failed ? "" : s->shown.data;
}
