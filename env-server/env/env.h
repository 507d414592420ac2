/* An environment: tokenizer, data pools, rewards and metrics of one config. Read-only after
 * opening, so slots and jobs of any thread share it.
 *
 *     tg_env *env;
 *     tg_env_open(&env, &settings, err);
 *     tg_slot_reset(env, slot, &item, ...);      // slot.h
 *     tg_env_close(&env); */
#ifndef TG_ENV_ENV_H
#define TG_ENV_ENV_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/net/stats.h"
#include "common/text/tokenizer.h"
#include "env-server/datapool/datapool.h"
#include "env-server/env/prompt.h"
#include "env-server/env/sampler.h"
#include "env-server/env/settings.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/reward.h"
#include "proto/messages.h"

typedef struct tg_env {
    const tg_env_settings *settings; /* borrowed */
    tg_tokenizer *tokenizer;
    struct tg_stop_strings *stops; /* NULL: none */
    int32_t n_tokens;              /* ids the tokenizer knows */
    tg_prompt_encoder prompt;
    tg_ids context_start; /* what the context holds before the first action */
    tg_datapool pools[4]; /* by tg_split; [0] unused */
    tg_sampler samplers[4];
    struct tg_judges *judges; /* models of rewards and metrics */
    tg_reward chosen;         /* reward_fn */
    tg_reward *rewards;       /* it, or the parts of a weighted sum */
    size_t n_rewards;
    bool slow_rewards;    /* some reward must not run on the server's loop */
    bool waiting_rewards; /* some reward is had elsewhere, or from a model that many share */
    bool asks_ahead;      /* one of them is given for every token: asked for a whole step at once */
    bool wants_before;    /* some reward looks at the text without the newest token */
    bool ranked;          /* rewards judge groups of samples: an episode ends with status PENDING */
    tg_metric *metrics;
    size_t n_metrics;
    const char **reward_names, **metric_names;
    struct tg_reward_meter *meters; /* of the rewards; NULL: nobody counts */
    tg_env_spec spec;
} tg_env;

/* Opens everything. TG_UNSUPPORTED: a component that is not built. settings must outlive env. */
tg_status tg_env_open(tg_env **out, const tg_env_settings *settings, tg_error *err) TG_MUST_CHECK;
void tg_env_close(tg_env **env);
/* Shows what its rewards do; before any is asked. stats is borrowed until tg_env_unwatch. */
tg_status tg_env_watch(tg_env *env, tg_stats *stats, tg_error *err) TG_MUST_CHECK;
void tg_env_unwatch(tg_env *env);
/* A step was answered without its rewards, which were not there in time. */
void tg_env_count_timeout(const tg_env *env);

/* Parts of it, for commands that need no whole environment. */
tg_status tg_env_open_tokenizer(const tg_env_settings *s, tg_tokenizer **out,
                                tg_error *err) TG_MUST_CHECK;
size_t tg_env_prompt_length(const tg_env_settings *s, const tg_tokenizer *tokenizer);

enum { TG_ENV_DECODE = TG_DECODE_SKIP_SPECIAL | TG_DECODE_CLEAN_UP };
/* Completion tokens to text as the rewards see it: without special tokens, spaces cleaned up; ids
 * that only the model's padded vocabulary has are left out. Replaces what text held. */
tg_status tg_env_decode(const tg_env *env, const int32_t *tokens, size_t n, tg_buf *text,
                        tg_error *err) TG_MUST_CHECK;

/* Samples first .. first + n of a split (fewer at its end), with prompt tokens. Everything is in
 * the arena. */
tg_status tg_env_samples(const tg_env *env, const tg_sample_range *range, tg_arena *arena,
                         tg_samples *out, tg_error *err) TG_MUST_CHECK;
/* All metrics over the given generations. A metric that fails is a value with an error. */
tg_status tg_env_metric(const tg_env *env, const tg_metric_request *req, tg_arena *arena,
                        tg_metric_reply *out, tg_error *err) TG_MUST_CHECK;
/* Rewards of finished texts. req->fn "": the weighted sum of all; else the reward of that name
 * (TG_NOINPUT: no such one). req->ranked: the items are samples of one prompt, judged together, which functions
 * that rank need (TG_USAGE without it). */
tg_status tg_env_score(const tg_env *env, const tg_score_request *req, tg_arena *arena,
                       tg_score_reply *out, tg_error *err) TG_MUST_CHECK;

/* Weighted sum of one token's n_rewards values; the first status that is not OK is the total's. Says why the sum is not one where none of
 * the values does, else "". */
const char *tg_env_combine(const tg_env *env, const tg_reward_value *values,
                           tg_reward_value *total);

/* The wire's code for a failed call. */
tg_code tg_env_code(tg_status status);

#endif
