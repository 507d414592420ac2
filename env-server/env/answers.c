/* What an environment answers besides stepping: samples and metrics; and how rewards become one.
 * Pure reads of the environment, on any thread. */
#include "env-server/env/env.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "proto/limits.h"
#include "proto/split.h"

#include <math.h>
#include <string.h>

tg_code tg_env_code(tg_status status) {
    switch (status) {
    case TG_OK: return TG_CODE_OK;
    case TG_NOMEM:
    case TG_BUSY: return TG_CODE_OVERLOADED;
    case TG_NOINPUT: return TG_CODE_NOT_FOUND;
    case TG_USAGE: return TG_CODE_INVALID_ARGUMENT;
    case TG_TIMEOUT: return TG_CODE_DEADLINE_EXCEEDED;
    default: return TG_CODE_INTERNAL;
    }
}

tg_status tg_env_decode(const tg_env *env, const int32_t *tokens, size_t n, tg_buf *text,
                        tg_error *err) {
    static const unsigned flags = TG_ENV_DECODE;
    tg_buf_reset(text);
    size_t known = 0;
    while (known < n && tokens[known] < env->n_tokens) known++;
    tg_status st;
    if (known == n) {
        st = tg_tokenizer_decode(env->tokenizer, tokens, n, flags, text, err);
    } else {
        int32_t *kept = tg_alloc_array(n, sizeof *kept);
        if (!kept) return tg_fail_nomem(err, n * sizeof *kept);
        size_t n_kept = 0;
        for (size_t i = 0; i < n; i++)
            if (tokens[i] < env->n_tokens) kept[n_kept++] = tokens[i];
        st = tg_tokenizer_decode(env->tokenizer, kept, n_kept, flags, text, err);
        tg_free(kept);
    }
    if (st == TG_OK && !text->data) tg_buf_puts(text, ""); /* an empty text is a text */
    return st == TG_OK && text->failed ? tg_fail_nomem(err, n) : st;
}

/* ---- samples ------------------------------------------------------------------------------- */

static tg_status need_split(const tg_env *env, tg_split split, tg_error *err) {
    if (split < TG_SPLIT_TRAIN || split > TG_SPLIT_TEST)
        return tg_fail(err, TG_USAGE, "there is no split %d", (int)split);
    if (env->pools[split].count) return TG_OK;
    return tg_fail(err, TG_NOINPUT, "the data pool has no %s split (see datapool.args)",
                   tg_split_name(split));
}

tg_status tg_env_samples(const tg_env *env, const tg_sample_range *range, tg_arena *arena,
                         tg_samples *out, tg_error *err) {
    *out = (tg_samples){0};
    tg_status st = need_split(env, range->split, err);
    if (st != TG_OK) return st;
    const tg_datapool *pool = &env->pools[range->split];
    uint64_t left = range->first < pool->count ? pool->count - range->first : 0;
    size_t n = range->n < left ? range->n : (size_t)left;
    tg_sample *items = tg_arena_array(arena, n ? n : 1, sizeof *items);
    if (!items) return tg_fail_nomem(err, n * sizeof *items);
    tg_ids ids = {0};
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        st = tg_datapool_get(pool, range->first + i, arena, &items[i], err);
        if (st == TG_OK) st = tg_prompt_encode(&env->prompt, items[i].prompt_text, &ids, err);
        if (st != TG_OK) break;
        int32_t *copy = tg_arena_array(arena, ids.n ? ids.n : 1, sizeof *copy);
        if (!copy)
            st = tg_fail_nomem(err, ids.n * sizeof *copy);
        else if (ids.n)
            memcpy(copy, ids.data, ids.n * sizeof *copy);
        items[i].prompt = copy, items[i].n_prompt = ids.n;
    }
    tg_ids_fini(&ids);
    *out = (tg_samples){items, n};
    return st;
}

/* ---- metrics ------------------------------------------------------------------------------- */

/* A text for the wire, which ends strings at NUL: such bytes become U+FFFD. */
static const char *wire_text(tg_arena *arena, const char *text, size_t len) {
    if (!memchr(text, 0, len)) return text;
    char *copy = tg_arena_alloc(arena, 3 * len + 1), *to = copy;
    if (!copy) return NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i])
            *to++ = text[i];
        else
            memcpy(to, "\xEF\xBF\xBD", 3), to += 3;
    }
    *to = 0;
    return copy;
}

static tg_status read_generation(const tg_env *env, tg_split split, const tg_generation *g,
                                 tg_arena *arena, tg_buf *text, tg_metric_item *out,
                                 tg_error *err) {
    tg_sample *sample = tg_arena_alloc(arena, sizeof *sample);
    if (!sample) return tg_fail_nomem(err, sizeof *sample);
    if (g->sample >= env->pools[split].count)
        return tg_fail(err, TG_USAGE, "sample %llu does not exist: %s has %llu",
                       (unsigned long long)g->sample, tg_split_name(split),
                       (unsigned long long)env->pools[split].count);
    tg_status st = tg_datapool_get(&env->pools[split], g->sample, arena, sample, err);
    if (st != TG_OK) return st;
    out->sample = sample;
    if (g->text) {
        out->text = g->text, out->text_len = strlen(g->text);
        return TG_OK;
    }
    for (size_t i = 0; i < g->n_tokens; i++)
        if (g->tokens[i] < 0 || g->tokens[i] >= (int64_t)env->spec.vocab_size)
            return tg_fail(err, TG_USAGE, "token %d is not in the vocabulary of %u tokens",
                           g->tokens[i], env->spec.vocab_size);
    st = tg_env_decode(env, g->tokens, g->n_tokens, text, err);
    if (st != TG_OK) return st;
    out->text_len = text->len;
    out->text = tg_arena_strndup(arena, text->data, text->len);
    return out->text ? TG_OK : tg_fail_nomem(err, text->len);
}

static tg_status collect_texts(const tg_metric_item *items, size_t n, tg_arena *arena,
                               tg_metric_reply *out, tg_error *err) {
    const char **texts = tg_arena_array(arena, n, sizeof *texts);
    if (!texts) return tg_fail_nomem(err, n * sizeof *texts);
    for (size_t i = 0; i < n; i++)
        if (!(texts[i] = wire_text(arena, items[i].text, items[i].text_len)))
            return tg_fail_nomem(err, items[i].text_len);
    out->texts = texts, out->n_texts = n;
    return TG_OK;
}

tg_status tg_env_metric(const tg_env *env, const tg_metric_request *req, tg_arena *arena,
                        tg_metric_reply *out, tg_error *err) {
    *out = (tg_metric_reply){0};
    if (req->n == 0) return tg_fail(err, TG_USAGE, "metrics need at least one generation");
    tg_status st = need_split(env, req->split, err);
    if (st != TG_OK) return st;
    tg_metric_item *items = tg_arena_array(arena, req->n, sizeof *items);
    if (!items) return tg_fail_nomem(err, req->n * sizeof *items);
    tg_buf text = {0};
    for (size_t i = 0; i < req->n && st == TG_OK; i++)
        st = read_generation(env, req->split, &req->items[i], arena, &text, &items[i], err);
    tg_buf_fini(&text);
    tg_metric_input in = {.items = items, .n = req->n, .split = req->split};
    tg_metric_out values = {.arena = arena};
    for (size_t i = 0; i < env->n_metrics && st == TG_OK; i++)
        st = tg_metric_compute(&env->metrics[i], &in, &values, err);
    if (st == TG_OK && req->want_text) st = collect_texts(items, req->n, arena, out, err);
    out->values = values.values, out->n_values = values.n;
    return st;
}

/* ---- rewards ------------------------------------------------------------------------------- */

const char *tg_env_combine(const tg_env *env, const tg_reward_value *values,
                           tg_reward_value *total) {
    *total = (tg_reward_value){TG_REWARD_OK, 0};
    for (size_t k = 0; k < env->n_rewards; k++) {
        if (values[k].status != TG_REWARD_OK && total->status == TG_REWARD_OK)
            total->status = values[k].status;
        total->value += env->rewards[k].weight * values[k].value;
    }
    bool overflow = total->status == TG_REWARD_OK && !isfinite(total->value);
    if (overflow) total->status = TG_REWARD_INVALID;
    if (total->status != TG_REWARD_OK) total->value = (double)NAN;
    return overflow ? "the weighted sum of the rewards is not a finite number" : "";
}
