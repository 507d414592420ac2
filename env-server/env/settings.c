/* Reading of the environment's sections. The tables below are the schema. */
#include "env-server/env/settings.h"

#include "common/base/hash.h"
#include "common/config/json.h"
#include "env-server/datapool/datapool.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/reward.h"

#include <stdio.h>
#include <string.h>

#define T tg_tokenizer_settings
static const tg_opt tokenizer_options[] = {
    TG_OPT_ROW(T, model_name, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0, NULL,
               "Folder or name of the model whose tokenizer is used."),
    TG_OPT_STR_ONE_OF(T, padding_side, "left", "left|right",
                      "Side of padding, where a client pads."),
    TG_OPT_STR_ONE_OF(T, truncation_side, "left", "left|right", "Side that is cut off long texts."),
    TG_OPT_BOOL(T, pad_token_as_eos_token, "true", "Pad with EOS where there is no pad token."),
    TG_OPT_ROW(T, max_length, TG_T_INT, TG_OPT_NULLABLE, NULL, 1, 1e9, NULL,
               "Longest prompt in tokens where env.args.max_prompt_length is unset; unset: the "
               "tokenizer's "
               "own limit. Texts of supervised training are not cut by it, as in RL4LMs."),
    TG_OPT_END};
#undef T

#define T tg_mdp_settings
static const tg_opt mdp_options[] = {
    TG_OPT_INT(T, max_episode_length, "512", 1, 65536, "Tokens after which an episode is cut."),
    TG_OPT_ROW(
        T, max_prompt_length, TG_T_INT, TG_OPT_NULLABLE, NULL, 1, 65536, NULL,
        "Longest prompt in tokens; unset: tokenizer.max_length, or the tokenizer's own limit."),
    TG_OPT_BOOL(T, terminate_on_eos, "false", "The EOS token ends an episode."),
    TG_OPT_NODE(T, stop_strings,
                "A text or a list of texts: an episode ends with the token that completes one."),
    TG_OPT_STR_ONE_OF(T, prompt_truncation_side, "left", "left|right",
                      "Side that is cut off long prompts."),
    TG_OPT_ROW(T, context_start_token, TG_T_INT, TG_OPT_NULLABLE, NULL, 0, 2147483647, NULL,
               "Token that stands first in the context (a decoder's start token)."),
    TG_OPT_FLOAT(T, priority_scale, "0.0", 0, 1e3,
                 "Samples are drawn in proportion to weight to this power; 0: each equally often."),
    TG_OPT_END};
#undef T

struct env_section {
    int64_t n_envs, judge_threads;
    const tg_node *args;
};
static const tg_opt env_options[] = {
    TG_OPT_INT(struct env_section, n_envs, "1", 1, 65536, "Episodes that run at the same time."),
    TG_OPT_INT(struct env_section, judge_threads, "0", 0, 1024,
               "Threads of a worker for models in rewards and metrics; 0: one per CPU."),
    TG_OPT_NODE(struct env_section, args, "Options of the environment."), TG_OPT_END};

static tg_status read_metrics(tg_env_settings *s, tg_run_config *c, tg_error *err) {
    const tg_node *list = tg_node_get(c->train_evaluation, "metrics");
    if (tg_node_is_null(list)) return TG_OK;
    if (list->kind != TG_NODE_LIST)
        return tg_node_fail(list, "train_evaluation.metrics", err, "expected a list of {id, args}");
    s->metrics = tg_arena_array(&c->arena, list->n_items + 1, sizeof *s->metrics);
    if (!s->metrics) return tg_fail_nomem(err, list->n_items * sizeof *s->metrics);
    for (size_t i = 0; i < list->n_items; i++) {
        char path[64];
        snprintf(path, sizeof path, "train_evaluation.metrics.%zu", i);
        tg_status st = tg_choice_read(tg_metric_registry(), list->items[i], path, &c->arena,
                                      &s->metrics[i], err);
        if (st != TG_OK) return st;
        s->n_metrics++;
    }
    return TG_OK;
}

tg_status tg_env_settings_read(tg_env_settings *s, tg_run_config *c, tg_error *err) {
    memset(s, 0, sizeof *s);
    s->context.compat = c->compat != NULL;
    s->seed = (uint64_t)c->seed;
    struct env_section env;
    tg_arena *a = &c->arena;
    tg_status st =
        tg_opts_read(tokenizer_options, &s->tokenizer, c->tokenizer, "tokenizer", a, err);
    s->tokenizer.at = tg_node_get(c->tokenizer, "model_name");
    if (st == TG_OK && c->reward_fn)
        st = tg_choice_read(tg_reward_registry(), c->reward_fn, "reward_fn", a, &s->reward, err);
    if (st == TG_OK && !c->datapool)
        st =
            tg_fail(err, TG_CONFIG,
                    "%s: datapool: missing; add datapool.id, such as dummy_pool or jsonl", c->file);
    if (st == TG_OK)
        st = tg_choice_read(tg_datapool_registry(), c->datapool, "datapool", a, &s->datapool, err);
    if (st == TG_OK) st = tg_opts_read(env_options, &env, c->env, "env", a, err);
    if (st == TG_OK) st = tg_opts_read(mdp_options, &s->mdp, env.args, "env.args", a, err);
    if (st == TG_OK) s->n_envs = env.n_envs, s->judge_threads = env.judge_threads;
    if (st == TG_OK) st = read_metrics(s, c, err);
    return st;
}

tg_status tg_env_settings_require_built(const tg_env_settings *s, tg_error *err) {
    tg_status st = tg_choice_require_built(&s->reward, err);
    if (st == TG_OK) st = tg_choice_require_built(&s->datapool, err);
    for (size_t i = 0; i < s->n_metrics && st == TG_OK; i++)
        st = tg_choice_require_built(&s->metrics[i], err);
    return st;
}

static void episode_json(const tg_env_settings *s, tg_buf *out) {
    tg_buf_puts(out, "\"tokenizer\": ");
    tg_opts_json(tokenizer_options, &s->tokenizer, out);
    tg_buf_puts(out, ", \"reward_fn\": ");
    tg_choice_json(&s->reward, out);
    tg_buf_puts(out, ", \"datapool\": ");
    tg_choice_json(&s->datapool, out);
    tg_buf_puts(out, ", \"train_evaluation\": {\"metrics\": [");
    for (size_t i = 0; i < s->n_metrics; i++) {
        if (i) tg_buf_puts(out, ", ");
        tg_choice_json(&s->metrics[i], out);
    }
    tg_buf_puts(out, "]}, \"env\": {");
}

void tg_env_settings_json(const tg_env_settings *s, tg_buf *out) {
    tg_buf_putc(out, '{');
    episode_json(s, out);
    tg_buf_printf(out, "\"n_envs\": %lld, \"args\": ", (long long)s->n_envs);
    tg_opts_json(mdp_options, &s->mdp, out);
    tg_buf_printf(out, ", \"judge_threads\": %lld}}", (long long)s->judge_threads);
}

uint64_t tg_env_settings_digest(const tg_env_settings *s) {
    tg_buf text = {0};
    episode_json(s, &text);
    tg_opts_json(mdp_options, &s->mdp, &text);
    if (s->context.compat) tg_buf_puts(&text, "compat"); /* rewards differ */
    uint64_t digest = text.failed ? 0 : tg_hash64(text.data, text.len);
    tg_buf_fini(&text);
    return digest;
}
