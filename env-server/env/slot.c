/* The slot state machine. Nothing is changed until everything that can fail has been done, so an
 * answer OVERLOADED (no memory) leaves the slot as it was and the same call may be made again. */
#include "env-server/env/slot.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/text/stop_strings.h"
#include "env-server/datapool/datapool.h"
#include "env-server/env/slot_internal.h"
#include "env-server/reward/meter.h"
#include "proto/limits.h"

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

static bool ended(const tg_slot *s) {
    return s->state == TG_SLOT_TERMINATED || s->state == TG_SLOT_TRUNCATED;
}

static void put_u64(unsigned char *to, uint64_t v) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(v >> 8 * i);
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

/* ---- step: identity ------------------------------------------------------------------------ */

static tg_code refuse(tg_slot *s, tg_step_result *out, tg_code code, const char *why) {
    snprintf(s->message, sizeof s->message, "%.250s", why);
    out->code = code;
    out->message = s->message;
    return code;
}

/* CODE_OK: execute. With *replay set: answer again. Else the reason to refuse. */
static tg_code identify(const tg_env *env, tg_slot *s, const tg_step_item *item, uint64_t hash,
                        bool *replay, tg_step_result *out) {
    *replay = false;
    if (s->state == TG_SLOT_FREE) return refuse(s, out, TG_CODE_FAILED_STATE, "step before reset");
    if (s->reset.episode != item->episode)
        return refuse(s, out, TG_CODE_STALE, "the slot is in another episode");
    if (s->state == TG_SLOT_SCORING) {
        out->code = TG_CODE_OVERLOADED;
        out->message = "the slot's last step is still being scored";
        return out->code;
    }
    size_t next = tg_slot_length(env, s);
    if (tg_slot_is_restored_step(env, s, item)) {
        tg_slot_recall(env, s, item, hash);
        *replay = true;
        return TG_CODE_OK;
    }
    if (s->reply.valid && item->step == s->reply.step) {
        *replay = hash == s->reply.tokens_hash && item->n_tokens == s->reply.n_sent;
        return *replay ? TG_CODE_OK
                       : refuse(s, out, TG_CODE_CONFLICT, "this step was made with other tokens");
    }
    if (item->step < next)
        return refuse(s, out, TG_CODE_STALE, "this step is older than the last one");
    /* RL4LMs lets one step on after the end; the context keeps moving. */
    if ((ended(s) && !env->settings->context.compat) || next >= TG_LIMIT_TOKENS)
        return refuse(s, out, TG_CODE_FAILED_STATE, "step after the episode's end");
    if (item->step > next) {
        out->expected_step = (uint32_t)next;
        return refuse(s, out, TG_CODE_GAP, "steps are missing before this one");
    }
    return TG_CODE_OK;
}

static tg_code check_tokens(const tg_env *env, tg_slot *s, const tg_step_item *item,
                            tg_step_result *out) {
    if (item->n_tokens == 0)
        return refuse(s, out, TG_CODE_INVALID_ARGUMENT, "a step needs at least one token");
    for (size_t i = 0; i < item->n_tokens; i++) {
        if (item->tokens[i] >= 0 && item->tokens[i] < (int64_t)env->spec.vocab_size) continue;
        snprintf(s->message, sizeof s->message, "token %d is not in the vocabulary of %u tokens",
                 item->tokens[i], env->spec.vocab_size);
        out->message = s->message;
        return out->code = TG_CODE_INVALID_ARGUMENT;
    }
    return TG_CODE_OK;
}

/* ---- step: answer ----------------------------------------------------------------- */

void tg_slot_answer(const tg_env *env, tg_slot *s, bool want_text, bool replayed,
                    tg_step_result *out) {
    const tg_slot_reply *r = &s->reply;
    tg_error err = {0};
    out->code = r->code;
    out->message = r->code == TG_CODE_OK ? "" : s->reward_message;
    out->n_applied = r->n_applied;
    out->rewards = s->rewards + r->step;
    out->reward_status = r->status;
    out->stop = r->stop;
    out->terminated = r->stop == TG_STOP_EOS || r->stop == TG_STOP_SEQUENCE;
    out->truncated = r->stop == TG_STOP_LENGTH;
    out->replayed = replayed;
    out->state_digest = r->digest;
    out->components = s->components;
    out->n_components = s->n_components;
    if ((want_text || ended(s)) && tg_slot_text(env, s, tg_slot_length(env, s), &err) == TG_OK)
        out->text = tg_slot_text_for_wire(s);
}

/* ---- step: execution ----------------------------------------------------------------------- */

tg_stop tg_slot_ends(const tg_env *env, const tg_slot *s) {
    const int32_t *actions = s->context.data + env->context_start.n;
    const size_t n = tg_slot_length(env, s);
    bool eos = env->spec.has_eos && actions[n - 1] == (int32_t)env->spec.eos_id;
    if (eos && env->spec.terminate_on_eos) return TG_STOP_EOS;
    if (env->stops && tg_stop_strings_hit(env->stops, actions, (int)n)) return TG_STOP_SEQUENCE;
    return n == env->spec.max_episode_length ? TG_STOP_LENGTH : TG_STOP_NONE;
}

bool tg_slot_step_begin(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                        tg_step_result *out) {
    *out = (tg_step_result){.slot = item->slot, .episode = item->episode, .step = item->step};
    out->message = out->text = "";
    uint64_t hash = tg_hash64(item->tokens, item->n_tokens * sizeof *item->tokens);
    bool replay;
    if (identify(env, s, item, hash, &replay, out) != TG_CODE_OK) return false;
    if (replay) {
        tg_slot_answer(env, s, want_text, true, out);
        return false;
    }
    if (check_tokens(env, s, item, out) != TG_CODE_OK) return false;

    tg_error err = {0};
    tg_stop stop = TG_STOP_NONE;
    size_t length = tg_slot_length(env, s), n = 0;
    tg_status st = tg_slot_reserve(s, length + item->n_tokens, &err);
    while (st == TG_OK && n < item->n_tokens && stop == TG_STOP_NONE) {
        if (tg_ids_push(&s->context, item->tokens[n++]))
            stop = tg_slot_ends(env, s);
        else
            st = tg_fail_nomem(&err, sizeof *item->tokens);
    }
    if (st != TG_OK) {
        s->context.n = env->context_start.n + length;
        refuse(s, out, tg_env_code(st), err.msg);
        return false;
    }
    s->pending =
        (tg_slot_reply){.valid = true, .step = item->step, .tokens_hash = hash, .stop = stop};
    s->pending.n_sent = (uint32_t)item->n_tokens, s->pending.n_applied = (uint32_t)n;
    s->want_text = want_text;
    s->before = s->state;
    s->state = TG_SLOT_SCORING;
    return true;
}

/* Reward of the i-th action, whose text is decoded where some reward looks at it. */
static tg_status score_token(const tg_env *env, tg_slot *s, size_t i, bool done,
                             tg_reward_value *const *ahead, tg_error *err) {
    if (env->wants_before && i) {
        tg_status kept = tg_slot_text_before(env, s, i, err);
        if (kept != TG_OK) return kept;
    }
    for (size_t k = 0; k < env->n_rewards; k++) {
        const tg_reward *r = &env->rewards[k];
        s->values[k] = (tg_reward_value){TG_REWARD_OK, 0};
        if (r->traits.terminal && !done) continue;
        if (ahead && ahead[k]) {
            s->values[k] = ahead[k][i - s->pending.step];
            continue;
        }
        if (env->ranked) { /* whoever owns the group of samples asks for the reward of all together */
            s->values[k] = (tg_reward_value){TG_REWARD_PENDING, (double)NAN};
            tg_reward_meter_count(r->meter, TG_REWARD_PENDING, 1);
            continue;
        }
        tg_status st = tg_slot_text(env, s, i + 1, err);
        if (st != TG_OK) return st;
        tg_reward_input in = {.sample = &s->sample, .n_tokens = i + 1, .done = done};
        in.details = &s->details;
        s->details.prefix = r->name;
        in.tokens = s->context.data + env->context_start.n;
        in.text = s->text.data, in.text_len = s->text.len;
        if (env->wants_before && i)
            in.before = s->shorter.data ? s->shorter.data : "", in.before_len = s->shorter.len;
        st = tg_reward_score(r, &in, 1, &s->values[k], err);
        if (st == TG_NOMEM || st == TG_BUSY) return st;
        if (s->values[k].status != TG_REWARD_OK)
            snprintf(s->reward_message, sizeof s->reward_message, "reward %s: %.200s", r->name,
                     err->msg[0] ? err->msg : "not a finite number");
    }
    return TG_OK;
}

/* Adds the values of one token to the components of the step; a failed one stays failed. */
static void add_components(const tg_env *env, tg_slot *s, bool first) {
    for (size_t k = 0; k < env->n_rewards; k++) {
        tg_component *c = &s->components[k];
        if (first) *c = (tg_component){env->rewards[k].name, 0, TG_REWARD_OK};
        if (c->status == TG_REWARD_OK) c->status = s->values[k].status;
        c->value += s->values[k].value;
    }
}

/* Behind the components of the rewards stands what these told of themselves, as far as there is room. */
static void append_details(const tg_env *env, tg_slot *s) {
    size_t n = TG_MIN(s->details.n, (size_t)TG_LIMIT_COMPONENTS - env->n_rewards);
    s->n_components = env->n_rewards;
    if (!s->details.n || env->n_rewards > TG_LIMIT_COMPONENTS) return;
    if (env->n_rewards + n > s->cap_components) {
        size_t cap = env->n_rewards + n;
        tg_component *grown = tg_realloc_array(s->components, cap, sizeof *grown);
        if (!grown) return;
        s->components = grown, s->cap_components = cap;
    }
    memcpy(s->components + env->n_rewards, s->details.items, n * sizeof *s->details.items);
    s->n_components += n;
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

static void score_tokens(const tg_env *env, tg_slot *s, tg_reward_value *const *ahead) {
    tg_slot_reply *p = &s->pending;
    tg_error err = {0};
    uint64_t digest = s->digest;
    for (size_t i = 0; i < p->n_applied; i++) {
        size_t at = p->step + i;
        bool done = p->stop != TG_STOP_NONE && i + 1 == p->n_applied;
        s->scored = score_token(env, s, at, done, ahead, &err);
        if (s->scored != TG_OK) return;
        tg_reward_value total;
        tg_env_combine(env, s->values, &total);
        add_components(env, s, i == 0);
        s->rewards[at] = total.value;
        if (p->status == TG_REWARD_OK) p->status = total.status;
        digest = tg_slot_chain(digest, s->context.data[env->context_start.n + at],
                               total.status == TG_REWARD_OK ? total.value : (double)NAN);
    }
    p->digest = digest;
    append_details(env, s);
}

void tg_slot_score(const tg_env *env, tg_slot *s) {
    tg_reward_value **ahead;
    tg_arena arena = {0};
    tg_error err = {0};
    s->pending.status = TG_REWARD_OK;
    tg_reward_details_reset(&s->details);
    s->scored = tg_slot_score_ahead(env, s, &arena, &ahead, &err);
    if (s->scored == TG_OK) score_tokens(env, s, ahead);
    tg_arena_fini(&arena);
}

void tg_slot_step_end(const tg_env *env, tg_slot *s, tg_step_result *out) {
    TG_ASSERT(s->state == TG_SLOT_SCORING);
    if (s->scored != TG_OK) { /* no memory, no room in a queue: as if the step had not been made */
        s->context.n = env->context_start.n + s->pending.step;
        s->text_tokens = s->streamed = SIZE_MAX;
        s->state = s->before;
        s->reply.valid = false; /* its components are overwritten */
        refuse(s, out, TG_CODE_OVERLOADED,
               s->scored == TG_BUSY ? "too many rewards are waiting; try again"
                                    : "out of memory while scoring; try again");
        return;
    }
    s->reply = s->pending;
    s->digest = s->reply.digest;
    switch (s->reply.status) {
    case TG_REWARD_OK:
    case TG_REWARD_PENDING: s->reply.code = TG_CODE_OK; break;
    case TG_REWARD_TIMEOUT: s->reply.code = TG_CODE_REWARD_TIMEOUT; break;
    case TG_REWARD_INVALID: s->reply.code = TG_CODE_REWARD_INVALID; break;
    default: s->reply.code = TG_CODE_REWARD_FAILED; break;
    }
    tg_slot_set_state(s, s->reply.stop);
    tg_slot_answer(env, s, s->want_text, false, out);
}

void tg_slot_step(const tg_env *env, tg_slot *s, const tg_step_item *item, bool want_text,
                  tg_step_result *out) {
    if (!tg_slot_step_begin(env, s, item, want_text, out)) return;
    tg_slot_score(env, s);
    tg_slot_step_end(env, s, out);
}
