/* What a slot is: its memory, its digest, and the reset that begins an episode. */
#include "env-server/env/slot.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "env-server/datapool/datapool.h"
#include "env-server/env/slot_internal.h"
#include "proto/split.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Second key of the digest chain: separates it from other uses of SipHash here. */
static const uint64_t DIGEST_KEY = 0x7465787467656e31ULL; /* "textgen1" */

enum { SAMPLE_BLOCK = 1024 }; /* there may be 65536 slots */

tg_status tg_slot_init(tg_slot *s, const tg_env *env, uint32_t id, tg_error *err) {
    memset(s, 0, sizeof *s);
    s->id = id;
    s->arena.block = SAMPLE_BLOCK;
    s->text_tokens = s->streamed = SIZE_MAX;
    s->components = tg_alloc_array(env->n_rewards, sizeof *s->components);
    s->values = tg_alloc_array(env->n_rewards, sizeof *s->values);
    s->cap_components = s->n_components = env->n_rewards;
    if (s->components && s->values) return TG_OK;
    tg_slot_fini(s);
    return tg_fail_nomem(err, sizeof *s);
}

void tg_slot_fini(tg_slot *s) {
    tg_arena_fini(&s->arena);
    tg_ids_fini(&s->prompt);
    tg_ids_fini(&s->context);
    tg_free(s->rewards);
    tg_free(s->components);
    tg_free(s->values);
    tg_buf_fini(&s->text);
    tg_buf_fini(&s->shorter);
    tg_buf_fini(&s->shown);
    tg_decode_stream_destroy(&s->stream);
    tg_decode_stream_destroy(&s->spare);
    tg_reward_details_fini(&s->details);
    memset(s, 0, sizeof *s);
}

size_t tg_slot_length(const tg_env *env, const tg_slot *s) {
    return s->context.n > env->context_start.n ? s->context.n - env->context_start.n : 0;
}

static void put_u64(unsigned char *to, uint64_t v) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(v >> 8 * i);
}

uint64_t tg_slot_chain(uint64_t digest, int32_t token, double value) {
    unsigned char link[24];
    uint64_t bits = 0;
    bool known = !isnan(value);
    if (known) memcpy(&bits, &value, sizeof bits);
    put_u64(link, (uint64_t)token);
    put_u64(link + 8, known ? TG_REWARD_OK : TG_REWARD_FAILED);
    put_u64(link + 16, bits);
    return tg_siphash(digest, DIGEST_KEY, link, sizeof link);
}

void tg_slot_set_state(tg_slot *s, tg_stop stop) {
    bool ends = stop == TG_STOP_EOS || stop == TG_STOP_SEQUENCE;
    s->state = ends                     ? TG_SLOT_TERMINATED
               : stop == TG_STOP_LENGTH ? TG_SLOT_TRUNCATED
                                        : TG_SLOT_RUNNING;
}

/* ---- reset --------------------------------------------------------------------------------- */

static void fill_reset(const tg_slot *s, bool want_text, tg_reset_result *out) {
    out->code = TG_CODE_OK;
    out->sample = s->sample_index;
    out->sample_id = s->sample.id;
    out->prompt = s->prompt.data, out->n_prompt = s->prompt.n;
    out->prompt_text = want_text ? s->sample.prompt_text : "";
    out->state_digest = s->reset_digest;
}

static tg_status choose_sample(const tg_env *env, const tg_reset_item *item, uint64_t *out,
                               tg_error *err) {
    uint64_t n = env->pools[item->split].count;
    if (!n)
        return tg_fail(err, TG_NOINPUT, "the data pool has no %s split",
                       tg_split_name(item->split));
    if (item->has_sample && item->sample >= n)
        return tg_fail(err, TG_USAGE, "sample %llu does not exist: %s has %llu",
                       (unsigned long long)item->sample, tg_split_name(item->split),
                       (unsigned long long)n);
    *out = item->has_sample
               ? item->sample
               : tg_sampler_pick(&env->samplers[item->split], item->seed, item->episode);
    return TG_OK;
}

/* The same episode, whether its sample is named or drawn. */
static bool same_reset(const tg_env *env, const tg_slot *s, const tg_reset_item *item) {
    uint64_t sample;
    return s->reset.seed == item->seed && s->reset.split == item->split &&
           choose_sample(env, item, &sample, NULL) == TG_OK && sample == s->sample_index;
}

tg_status tg_slot_reserve(tg_slot *s, size_t n, tg_error *err) {
    if (n <= s->rewards_cap) return TG_OK;
    size_t cap = s->rewards_cap ? s->rewards_cap : 32;
    while (cap < n) cap *= 2;
    double *rewards = tg_realloc_array(s->rewards, cap, sizeof *rewards);
    if (!rewards) return tg_fail_nomem(err, cap * sizeof *rewards);
    s->rewards = rewards, s->rewards_cap = cap;
    return TG_OK;
}

static tg_status load_episode(const tg_env *env, tg_slot *s, const tg_reset_item *item,
                              tg_error *err) {
    tg_status st = choose_sample(env, item, &s->sample_index, err);
    if (st != TG_OK) return st;
    tg_arena_reset(&s->arena);
    st = tg_datapool_get(&env->pools[item->split], s->sample_index, &s->arena, &s->sample, err);
    if (st == TG_OK) st = tg_prompt_encode(&env->prompt, s->sample.prompt_text, &s->prompt, err);
    s->context.n = 0;
    for (size_t i = 0; i < env->context_start.n && st == TG_OK; i++)
        if (!tg_ids_push(&s->context, env->context_start.data[i])) st = tg_fail_nomem(err, 4);
    return st;
}

tg_status tg_slot_begin(const tg_env *env, tg_slot *s, const tg_reset_item *item, tg_error *err) {
    s->state = TG_SLOT_FREE; /* the old episode is over, whatever comes */
    s->reply.valid = false;
    s->text_tokens = s->streamed = SIZE_MAX;
    tg_status st = load_episode(env, s, item, err);
    if (st != TG_OK) return st;
    unsigned char start[24];
    put_u64(start, item->seed);
    put_u64(start + 8, (uint64_t)item->split);
    put_u64(start + 16, s->sample_index);
    s->digest = s->reset_digest =
        tg_siphash(env->spec.config_digest, DIGEST_KEY, start, sizeof start);
    s->reset = *item;
    s->state = TG_SLOT_READY;
    return TG_OK;
}

void tg_slot_reset(const tg_env *env, tg_slot *s, const tg_reset_item *item, bool want_text,
                   tg_reset_result *out) {
    *out = (tg_reset_result){.slot = item->slot, .episode = item->episode};
    out->message = out->prompt_text = out->sample_id = "";
    if (s->state != TG_SLOT_FREE && s->reset.episode == item->episode) {
        if (same_reset(env, s, item)) {
            fill_reset(s, want_text, out);
            return;
        }
        out->code = TG_CODE_CONFLICT;
        out->message = "this episode was reset with another seed, split or sample";
        return;
    }
    if (s->state == TG_SLOT_SCORING) {
        out->code = TG_CODE_OVERLOADED;
        out->message = "the slot's last step is still being scored";
        return;
    }
    tg_error err = {0};
    tg_status st = tg_slot_begin(env, s, item, &err);
    if (st == TG_OK) {
        fill_reset(s, want_text, out);
        return;
    }
    snprintf(s->message, sizeof s->message, "%.250s", err.msg);
    out->code = tg_env_code(st);
    out->message = s->message;
}
