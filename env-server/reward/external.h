/* What the reward functions outside this program have in common: options, and the way through a scorer.
 *
 * The state of each starts with a tg_external, its options with a tg_external_opts; only the backend differs. */
#ifndef TG_ENV_REWARD_EXTERNAL_H
#define TG_ENV_REWARD_EXTERNAL_H

#include "env-server/reward/score.h"

typedef struct tg_external_opts {
    int64_t max_batch, max_wait_ms, concurrency, max_queue, timeout_ms, retries, cache, breaker_ms;
    bool ranked, deterministic, per_token; /* the last two: not of every kind */
    const char *version;
} tg_external_opts;

#define TG_EXTERNAL_INT(S, f, d, lo, hi, h)                                                        \
    TG_OPT_ROW_KEY(#f, S, common.f, TG_T_INT, 0, d, lo, hi, NULL, h)
#define TG_EXTERNAL_BOOL(S, f, h)                                                                  \
    TG_OPT_ROW_KEY(#f, S, common.f, TG_T_BOOL, 0, "false", 0, 0, NULL, h)
/* Rows for the options struct S, whose member `common` is a tg_external_opts. */
#define TG_OPT_EXTERNAL(S, lanes)                                                                  \
    TG_EXTERNAL_INT(S, timeout_ms, "30000", 1, 86400000, "From asking to the answer."),            \
        TG_EXTERNAL_INT(S, max_batch, "32", 1, 4096, "Texts in one call."),                        \
        TG_EXTERNAL_INT(S, max_wait_ms, "2", 0, 60000, "How long a text waits for others."),       \
        TG_EXTERNAL_INT(S, concurrency, lanes, 1, TG_SCORE_LANES, "Calls at the same time."),      \
        TG_EXTERNAL_INT(S, max_queue, "4096", 1, 1000000, "Texts that may wait; beyond: busy."),   \
        TG_EXTERNAL_INT(S, retries, "2", 0, 100, "Further calls after a failure, where safe."),    \
        TG_EXTERNAL_INT(S, cache, "4096", 0, 10000000,                                             \
                        "Results remembered by content; deterministic functions only."),           \
        TG_EXTERNAL_INT(S, breaker_ms, "5000", 0, 86400000,                                        \
                        "How long a function is left alone that failed in 10 of 20 calls; 0: "     \
                        "never."),                                                                 \
        TG_EXTERNAL_BOOL(S, ranked, "It sees all samples of a prompt together and ranks them.")
#define TG_OPT_EXTERNAL_KIND(S)                                                                    \
    TG_EXTERNAL_BOOL(S, deterministic, "The same text always gets the same value."),               \
        TG_EXTERNAL_BOOL(S, per_token, "It is asked at every token, not only at the end."),        \
        TG_OPT_ROW_KEY("version", S, common.version, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, NULL,  \
                       "Of the function; another one empties the cache of results.")

typedef struct tg_external {
    tg_scorer *scorer;
    char *identity; /* owned */
    tg_reward_traits traits;
} tg_external;

/* Starts the scorer. kind and name: "http" and the URL, for messages; name and identity are copied. The traits follow from
 * the options. */
tg_status tg_external_open(tg_external *x, const tg_external_opts *o, const char *name,
                           const char *identity, const tg_score_ops *ops, void *backend,
                           tg_error *err) TG_MUST_CHECK;
void tg_external_close(tg_external *x); /* before the backend; also of a zeroed one */

/* The ops of a reward whose state starts with a tg_external. */
void tg_external_traits(const void *state, tg_reward_traits *traits);
tg_status tg_external_score(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err);

/* Shows the figures of all functions of this kind inside r (a weighted sum, a dense reward …). */
void tg_reward_figures(const tg_reward *r, tg_stats *to);

/* The row of such a reward, from what its file calls options, struct state, open_reward and close_reward. */
#define TG_EXTERNAL_OPS(id, text)                                                                  \
    {                                                                                              \
        .entry = {.name = id,                                                                      \
                  .summary = text,                                                                 \
                  .options = options,                                                              \
                  .options_size = sizeof(struct options),                                          \
                  .built = true},                                                                  \
        .state_size = sizeof(struct state), .open = open_reward, .close = close_reward,            \
        .traits = tg_external_traits, .score = tg_external_score,                                  \
    }

#endif
