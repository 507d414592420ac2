/* What an environment says of finished texts: the rewards of a ScoreRequest. Pure reads of the environment, on any
 * thread. */
#include "common/base/alloc.h"
#include "env-server/env/env.h"
#include "proto/limits.h"

#include <string.h>

/* One ScoreRequest on its way: n items, judged by n_rewards functions. */
typedef struct scoring {
    const tg_env *env;
    const tg_reward *rewards;
    size_t n_rewards, n;
    bool whole; /* the weighted sum of all, not one function */
    tg_reward_input *inputs;
    tg_reward_value *values;    /* (n_rewards, n) */
    tg_reward_details *details; /* (n) */
    const char **messages;      /* (n) */
    tg_arena *arena;
} scoring;

static tg_status prepare_scoring(scoring *s, const tg_score_request *req, tg_error *err) {
    tg_sample *samples = tg_arena_array(s->arena, s->n, sizeof *samples);
    s->inputs = tg_arena_array(s->arena, s->n, sizeof *s->inputs);
    s->values = tg_arena_array(s->arena, s->n_rewards * s->n, sizeof *s->values);
    s->details = tg_arena_array(s->arena, s->n, sizeof *s->details);
    s->messages = tg_arena_array(s->arena, s->n, sizeof *s->messages);
    if (!samples || !s->inputs || !s->values || !s->details || !s->messages)
        return tg_fail_nomem(err, s->n * sizeof *s->inputs);
    for (size_t i = 0; i < s->n; i++) {
        const tg_score_item *item = &req->items[i];
        samples[i] =
            (tg_sample){.id = "", .prompt_text = item->prompt, .meta_json = item->meta_json};
        samples[i].references = item->references, samples[i].n_references = item->n_references;
        s->inputs[i] = (tg_reward_input){.sample = &samples[i], .done = true};
        s->inputs[i].text = item->completion, s->inputs[i].text_len = strlen(item->completion);
        s->inputs[i].details = &s->details[i];
        s->messages[i] = "";
    }
    return TG_OK;
}

/* Judges inputs first .. first + n by one function. */
static tg_status score_some(scoring *s, size_t k, size_t first, size_t n, tg_error *err) {
    const tg_reward *r = &s->rewards[k];
    tg_error why = {0};
    tg_reward_value *values = s->values + k * s->n;
    for (size_t i = first; i < first + n; i++) s->details[i].prefix = r->name;
    tg_status st = tg_reward_score(r, s->inputs + first, n, values + first, &why);
    if (st == TG_BUSY) return tg_fail(err, TG_BUSY, "%s", why.msg);
    const char *message = why.msg[0] ? tg_arena_strdup(s->arena, why.msg) : "";
    if (!message) return tg_fail_nomem(err, sizeof why.msg);
    for (size_t i = first; i < first + n; i++)
        if (values[i].status != TG_REWARD_OK && !*s->messages[i]) s->messages[i] = message;
    return TG_OK;
}

/* Functions elsewhere, and those that compare, get all items at once; of the others each item fails alone. */
static tg_status score_by(scoring *s, size_t k, tg_error *err) {
    const tg_reward_traits *t = &s->rewards[k].traits;
    if (t->slow || t->ranked) return score_some(s, k, 0, s->n, err);
    tg_status st = TG_OK;
    for (size_t i = 0; i < s->n && st == TG_OK; i++) st = score_some(s, k, i, 1, err);
    return st;
}

static tg_status collect_result(scoring *s, size_t i, uint64_t id, tg_score_result *out,
                                tg_error *err) {
    size_t room = s->n_rewards < TG_LIMIT_COMPONENTS ? TG_LIMIT_COMPONENTS - s->n_rewards : 0;
    size_t more = s->details[i].n < room ? s->details[i].n : room;
    tg_component *parts = tg_arena_array(s->arena, s->n_rewards + more, sizeof *parts);
    tg_reward_value *values = tg_arena_array(s->arena, s->n_rewards, sizeof *values), total;
    if (!parts || !values) return tg_fail_nomem(err, s->n_rewards * sizeof *parts);
    for (size_t k = 0; k < s->n_rewards; k++) {
        values[k] = s->values[k * s->n + i];
        parts[k] = (tg_component){s->rewards[k].name, values[k].value, values[k].status};
    }
    for (size_t k = 0; k < more; k++) {
        parts[s->n_rewards + k] = s->details[i].items[k];
        parts[s->n_rewards + k].name = tg_arena_strdup(s->arena, s->details[i].items[k].name);
        if (!parts[s->n_rewards + k].name) return tg_fail_nomem(err, TG_LIMIT_NAME);
    }
    const char *why = "";
    if (s->whole)
        why = tg_env_combine(s->env, values, &total);
    else
        total = values[0];
    *out = (tg_score_result){.id = id, .status = total.status, .value = total.value};
    out->message = *why ? why : s->messages[i];
    out->components = parts, out->n_components = s->n_rewards + more;
    return TG_OK;
}

/* What the request names: one function, or all of the environment. */
static tg_status choose_functions(scoring *s, const tg_score_request *req, tg_error *err) {
    const tg_env *env = s->env;
    s->rewards = env->rewards, s->n_rewards = env->n_rewards, s->whole = true;
    for (size_t k = 0; k < env->n_rewards && *req->fn; k++)
        if (!strcmp(env->rewards[k].name, req->fn))
            s->rewards = &env->rewards[k], s->n_rewards = 1, s->whole = false;
    if (*req->fn && s->whole)
        return tg_fail(err, TG_NOINPUT, "this environment has no reward '%s'", req->fn);
    if (!env->n_rewards) return tg_fail(err, TG_NOINPUT, "this environment has no reward_fn");
    for (size_t k = 0; k < s->n_rewards; k++)
        if (s->rewards[k].traits.ranked && !req->ranked)
            return tg_fail(err, TG_USAGE,
                           "reward '%s' compares the samples of a prompt: ask with `ranked`, all "
                           "samples in one request",
                           s->rewards[k].name);
    return TG_OK;
}

tg_status tg_env_score(const tg_env *env, const tg_score_request *req, tg_arena *arena,
                       tg_score_reply *out, tg_error *err) {
    *out = (tg_score_reply){0};
    scoring s = {.env = env, .n = req->n, .arena = arena};
    tg_status st = choose_functions(&s, req, err);
    if (st != TG_OK || !req->n) return st;
    tg_score_result *results = tg_arena_array(arena, req->n, sizeof *results);
    if (!results) return tg_fail_nomem(err, req->n * sizeof *results);
    st = prepare_scoring(&s, req, err);
    if (st != TG_OK) return st;
    for (size_t k = 0; k < s.n_rewards && st == TG_OK; k++) st = score_by(&s, k, err);
    for (size_t i = 0; i < req->n && st == TG_OK; i++)
        st = collect_result(&s, i, req->items[i].id, &results[i], err);
    for (size_t i = 0; i < req->n; i++) tg_reward_details_fini(&s.details[i]);
    if (st == TG_OK) *out = (tg_score_reply){results, req->n};
    return st;
}
