/* Opening of an environment from its settings. Everything is closed again when a part fails. */
#include "env-server/env/env.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/config/locate.h"
#include "common/nn/family/config_json.h"
#include "common/text/stop_strings.h"
#include "env-server/env/compat.h"
#include "env-server/judge/judge.h"
#include "env-server/reward/inner.h"
#include "env-server/reward/meter.h"
#include "proto/limits.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* The model's vocabulary where it is larger than the tokenizer's (T5: 32128 rows for 32100 tokens):
 * the policy may sample such an id, so the environment accepts it. */
static int64_t model_vocab(const char *folder) {
    tg_config_json config;
    if (tg_config_json_open(&config, folder, "config.json", NULL) != TG_OK) return 0;
    int64_t n = json_integer_value(json_object_get(config.root, "vocab_size"));
    tg_config_json_close(&config);
    return n > 0 && n < INT32_MAX ? n : 0;
}

/* *rows: the model's vocabulary, 0 when it is not known. */
static tg_status open_located(const tg_tokenizer_settings *s, tg_tokenizer **out, int64_t *rows,
                              tg_error *err) {
    char *folder = NULL;
    tg_status st = tg_model_locate(s->model_name, &folder, err);
    if (st == TG_OK) st = tg_tokenizer_open(out, folder, err);
    if (st != TG_OK) tg_node_blame(s->at, "tokenizer.model_name", st, err);
    if (st == TG_OK && s->pad_token_as_eos_token) tg_tokenizer_set_pad_as_eos(*out);
    if (st == TG_OK) *rows = model_vocab(folder);
    tg_free(folder);
    return st;
}

tg_status tg_env_open_tokenizer(const tg_env_settings *s, tg_tokenizer **out, tg_error *err) {
    int64_t rows;
    return open_located(&s->tokenizer, out, &rows, err);
}

static tg_status open_tokenizer(tg_env *env, tg_error *err) {
    int64_t rows;
    tg_status st = open_located(&env->settings->tokenizer, &env->tokenizer, &rows, err);
    if (st != TG_OK) return st;
    env->n_tokens = tg_tokenizer_size(env->tokenizer);
    if (env->settings->context.compat) {
        int64_t named = tg_compat_actions(env->settings->tokenizer.model_name);
        if (named > rows) rows = named;
    }
    env->spec.vocab_size = (uint32_t)(rows > env->n_tokens ? rows : env->n_tokens);
    return TG_OK;
}

size_t tg_env_prompt_length(const tg_env_settings *s, const tg_tokenizer *tokenizer) {
    int64_t n = s->mdp.max_prompt_length;
    if (n == INT64_MIN) n = s->tokenizer.max_length;
    if (n == INT64_MIN) n = tg_tokenizer_max_length(tokenizer);
    return n < TG_LIMIT_TOKENS ? (size_t)n : TG_LIMIT_TOKENS;
}

/* Where RL4LMs starts the context: at the given token, else at the encoding of the empty text. */
static tg_status open_context(tg_env *env, tg_error *err) {
    int64_t start = env->settings->mdp.context_start_token;
    if (start == INT64_MIN)
        return tg_tokenizer_encode(env->tokenizer, "", 0, TG_ENCODE_SPECIAL, &env->context_start,
                                   err);
    if (start >= (int64_t)env->spec.vocab_size)
        return tg_fail(err, TG_CONFIG,
                       "env.args.context_start_token: %lld is not in the vocabulary of %u tokens",
                       (long long)start, env->spec.vocab_size);
    return tg_ids_push(&env->context_start, (int32_t)start) ? TG_OK
                                                            : tg_fail_nomem(err, sizeof start);
}

static tg_status open_mdp(tg_env *env, tg_error *err) {
    const tg_mdp_settings *s = &env->settings->mdp;
    int32_t eos = tg_tokenizer_eos(env->tokenizer), pad = tg_tokenizer_pad(env->tokenizer);
    env->spec.has_eos = eos >= 0;
    env->spec.eos_id = eos >= 0 ? (uint32_t)eos : 0;
    env->spec.pad_id = pad >= 0 ? (uint32_t)pad : env->spec.eos_id;
    env->spec.terminate_on_eos = s->terminate_on_eos;
    env->spec.n_tokens = (uint32_t)env->n_tokens;
    env->spec.compat = env->settings->context.compat;
    env->spec.pad_right = !strcmp(env->settings->tokenizer.padding_side, "right");
    env->spec.max_episode_length = (uint32_t)s->max_episode_length;
    env->spec.max_prompt_length = (uint32_t)tg_env_prompt_length(env->settings, env->tokenizer);
    env->spec.tokenizer_digest = tg_tokenizer_digest(env->tokenizer);
    if (s->terminate_on_eos && eos < 0)
        return tg_fail(err, TG_CONFIG,
                       "env.args.terminate_on_eos: the tokenizer %s has no EOS token",
                       env->settings->tokenizer.model_name);
    tg_status st = tg_prompt_init(&env->prompt, env->tokenizer, env->spec.max_prompt_length,
                                  !strcmp(s->prompt_truncation_side, "left"), err);
    if (st == TG_OK && !tg_node_is_null(s->stop_strings))
        st = tg_stop_strings_create(&env->stops, s->stop_strings, "env.args", env->tokenizer,
                                    (int)env->spec.vocab_size, err);
    if (st == TG_OK) st = open_context(env, err);
    env->spec.context_start = env->context_start.data;
    env->spec.n_context_start = env->context_start.n;
    env->spec.has_context_start = s->context_start_token != INT64_MIN;
    return st;
}

static tg_status open_pools(tg_env *env, tg_error *err) {
    const tg_choice *c = &env->settings->datapool;
    const tg_datapool_context context = {.compat = env->settings->context.compat,
                                         .seed = env->settings->seed,
                                         .tokenizer = env->tokenizer,
                                         .max_prompt_length = env->spec.max_prompt_length};
    for (int split = TG_SPLIT_TRAIN; split <= TG_SPLIT_TEST; split++) {
        tg_datapool *p = &env->pools[split];
        tg_status st = tg_datapool_open(p, (const tg_datapool_ops *)c->entry, c->options, &context,
                                        (tg_split)split, err);
        if (st == TG_OK)
            st = tg_sampler_init(&env->samplers[split], p, env->settings->mdp.priority_scale, err);
        if (st != TG_OK) return st;
        env->spec.n_samples[split] = p->count;
    }
    return TG_OK;
}

/* What the components learn of the run. */
static tg_open_context context_of(const tg_env *env) {
    tg_open_context ctx = env->settings->context;
    ctx.train = &env->pools[TG_SPLIT_TRAIN];
    ctx.judges = env->judges;
    return ctx;
}

static tg_status open_rewards(tg_env *env, tg_error *err) {
    const tg_choice *c = &env->settings->reward;
    env->spec.deterministic = true;
    if (!c->entry) return TG_OK;
    tg_open_context ctx = context_of(env);
    tg_status st =
        tg_reward_open(&env->chosen, (const tg_reward_ops *)c->entry, c->options, &ctx, err);
    if (st != TG_OK) return st;
    env->n_rewards = 1;
    env->spec.has_reward = true;
    env->spec.batched_reward = tg_compat_batched(c->entry->name);
    env->rewards = tg_reward_parts(&env->chosen, &env->n_rewards);
    if (!env->rewards) env->rewards = &env->chosen;
    env->reward_names = tg_alloc_array(env->n_rewards, sizeof *env->reward_names);
    if (!env->reward_names) return tg_fail_nomem(err, env->n_rewards * sizeof *env->reward_names);
    for (size_t i = 0; i < env->n_rewards; i++) {
        env->reward_names[i] = env->rewards[i].name;
        env->slow_rewards |= env->rewards[i].traits.slow;
        env->waiting_rewards |= env->rewards[i].traits.waits;
        env->asks_ahead |= env->rewards[i].traits.waits && !env->rewards[i].traits.terminal;
        env->wants_before |= env->rewards[i].traits.wants_before;
        env->spec.deterministic &= env->rewards[i].traits.deterministic;
        env->ranked |= env->rewards[i].traits.ranked;
    }
    for (size_t i = 0; env->ranked && i < env->n_rewards; i++)
        if (!env->rewards[i].traits.terminal)
            return tg_fail(err, TG_CONFIG,
                           "reward_fn: '%s' is given for every token and cannot stand beside a "
                           "reward that ranks finished samples",
                           env->rewards[i].name);
    env->spec.reward_names = env->reward_names;
    env->spec.n_rewards = env->n_rewards;
    return TG_OK;
}

static tg_status open_metrics(tg_env *env, tg_error *err) {
    size_t n = env->settings->n_metrics;
    tg_open_context ctx = context_of(env);
    env->metrics = tg_alloc_array(n, sizeof *env->metrics);
    env->metric_names = tg_alloc_array(n, sizeof *env->metric_names);
    if (!env->metrics || !env->metric_names) return tg_fail_nomem(err, n * sizeof *env->metrics);
    for (; env->n_metrics < n; env->n_metrics++) {
        const tg_choice *c = &env->settings->metrics[env->n_metrics];
        tg_status st = tg_metric_open(&env->metrics[env->n_metrics],
                                      (const tg_metric_ops *)c->entry, c->options, &ctx, err);
        if (st != TG_OK) return st;
        env->metric_names[env->n_metrics] = c->entry->name;
    }
    env->spec.metric_names = env->metric_names;
    env->spec.n_metrics = n;
    return TG_OK;
}

/* Workers agree on an episode when config, tokenizer and data agree. */
static uint64_t config_digest(const tg_env *env) {
    uint64_t parts[] = {tg_env_settings_digest(env->settings),
                        env->spec.tokenizer_digest,
                        env->spec.vocab_size,
                        tg_datapool_digest(&env->pools[TG_SPLIT_TRAIN]),
                        tg_datapool_digest(&env->pools[TG_SPLIT_VAL]),
                        tg_datapool_digest(&env->pools[TG_SPLIT_TEST])};
    return tg_hash64(parts, sizeof parts);
}

tg_status tg_env_open(tg_env **out, const tg_env_settings *settings, tg_error *err) {
    *out = NULL;
    tg_status st = tg_env_settings_require_built(settings, err);
    if (st != TG_OK) return st;
    tg_env *env = tg_alloc(sizeof *env);
    if (!env) return tg_fail_nomem(err, sizeof *env);
    env->settings = settings;
    env->spec.env_id = "textgen";
    st = open_tokenizer(env, err);
    if (st == TG_OK) st = open_mdp(env, err);
    if (st == TG_OK) st = open_pools(env, err);
    if (st == TG_OK) st = tg_judges_create(&env->judges, (int)settings->judge_threads, err);
    if (st == TG_OK) st = open_rewards(env, err);
    if (st == TG_OK) st = open_metrics(env, err);
    if (st == TG_OK) env->spec.config_digest = config_digest(env);
    *out = env;
    if (st != TG_OK) tg_env_close(out);
    return st;
}

tg_status tg_env_watch(tg_env *env, tg_stats *stats, tg_error *err) {
    env->meters = tg_alloc_array(env->n_rewards + 1, sizeof *env->meters);
    if (!env->meters) return tg_fail_nomem(err, env->n_rewards * sizeof *env->meters);
    for (size_t i = 0; i < env->n_rewards; i++) {
        tg_reward_meter_init(&env->meters[i], stats, env->rewards[i].name);
        env->rewards[i].meter = &env->meters[i];
    }
    return TG_OK;
}

void tg_env_unwatch(tg_env *env) {
    for (size_t i = 0; i < env->n_rewards; i++) env->rewards[i].meter = NULL;
    tg_free(env->meters);
    env->meters = NULL;
}

void tg_env_count_timeout(const tg_env *env) {
    for (size_t i = 0; i < env->n_rewards; i++)
        if (env->rewards[i].traits.slow)
            tg_reward_meter_count(env->rewards[i].meter, TG_REWARD_TIMEOUT, 1);
}

void tg_env_close(tg_env **out) {
    tg_env *env = *out;
    if (!env) return;
    for (size_t i = 0; i < env->n_metrics; i++) tg_metric_close(&env->metrics[i]);
    tg_reward_close(&env->chosen);
    tg_judges_destroy(&env->judges);
    for (int split = TG_SPLIT_TRAIN; split <= TG_SPLIT_TEST; split++) {
        tg_sampler_fini(&env->samplers[split]);
        tg_datapool_close(&env->pools[split]);
    }
    tg_free(env->metrics);
    tg_free(env->metric_names);
    tg_free(env->reward_names);
    tg_ids_fini(&env->context_start);
    tg_stop_strings_destroy(&env->stops);
    tg_tokenizer_destroy(&env->tokenizer);
    tg_free(env);
    *out = NULL;
}
