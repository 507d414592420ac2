/* The scorer: what stands before every reward function outside this program. It gathers the texts of many slots into
 * calls, keeps the number of calls under way and the queue bounded, gives every text an answer in time, tries again
 * where that is safe, leaves a broken function alone (breaker), and remembers what a deterministic one said (cache).
 *
 *     tg_scorer_create(&scorer, &opts, &ops, backend, err);
 *     tg_scorer_score(scorer, inputs, n, values, err);        // any thread; waits for the answer
 *     tg_scorer_destroy(&scorer);
 *
 * Each of `concurrency` lanes is a thread that makes one call at a time. Whatever goes wrong is a status: a function
 * that failed TG_REWARD_FAILED, one that was too late TG_REWARD_TIMEOUT, an answer that is no finite number or of the
 * wrong form TG_REWARD_INVALID. Nothing is ever made up. */
#ifndef TG_ENV_SCORE_H
#define TG_ENV_SCORE_H

#include "env-server/reward/reward.h"
#include "env-server/reward/score_stats.h"
#include "env-server/reward/score_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_scorer tg_scorer;

/* One call of a function: n texts (ranked: all samples of one prompt). */
typedef struct tg_score_call {
    const tg_score_text *const *texts;
    size_t n;
    bool ranked;
    uint64_t deadline_ns; /* monotonic */
    tg_arena *arena;      /* for messages and components of the results */
} tg_score_call;

/* What a backend knows of a failed call. */
typedef struct tg_score_fault {
    bool
        retry; /* the same call may be made again: it was surely not processed, or doing it twice is harmless */
    uint32_t retry_after_ms; /* not before; 0: no wish */
} tg_score_fault;

typedef struct tg_score_ops {
    /* Makes one call, on the thread of its lane, one at a time per lane. Fills results[0 .. n), in the order of the
     * texts. A failing return means that none has a value: TG_TIMEOUT too late, TG_DATA an answer of the wrong form,
     * else failed. Must come back soon after the deadline. */
    tg_status (*call)(void *backend, int lane, const tg_score_call *call, tg_score_result *results,
                      tg_score_fault *fault, tg_error *err);
    /* The lane begins, on its thread: what takes long to start is started now. May be NULL. */
    void (*enter)(void *backend, int lane);
    /* Ends the lane's resources, on its thread. May be NULL. */
    void (*leave)(void *backend, int lane);
    /* The scorer is closing: calls under way should end soon. Any thread; may be NULL. */
    void (*interrupt)(void *backend);
} tg_score_ops;

enum { TG_SCORE_LANES = 64 };

typedef struct tg_score_opts {
    const char *name;     /* of the function, for messages; borrowed for the scorer's life */
    const char *identity; /* function, version and options, for the cache; borrowed */
    size_t max_batch;     /* texts in one call */
    uint32_t max_wait_ms; /* how long the first text waits for others */
    int concurrency;      /* calls at the same time, at most TG_SCORE_LANES */
    size_t max_queue;     /* texts waiting; beyond: TG_BUSY */
    uint32_t timeout_ms;  /* from asking to the answer */
    int retries;          /* further calls, where a fault allows */
    size_t cache;         /* results remembered; 0 or not deterministic: none */
    uint32_t breaker_ms;  /* how long a broken function is left alone; 0: no breaker */
    bool deterministic, ranked;
} tg_score_opts;

/* backend is borrowed: it must outlive the scorer. */
tg_status tg_scorer_create(tg_scorer **out, const tg_score_opts *opts, const tg_score_ops *ops,
                           void *backend, tg_error *err) TG_MUST_CHECK;
/* Fails what waits, ends calls under way, joins the lanes. */
void tg_scorer_destroy(tg_scorer **scorer);

/* Judges n texts, as one group when the function ranks. TG_BUSY: no room in the queue, nothing was judged. Else TG_OK:
 * every text has a status, err->msg says why the last one without a number has none. Named parts go to inputs[i].details.
 */
tg_status tg_scorer_score(tg_scorer *scorer, const tg_reward_input *inputs, size_t n,
                          tg_reward_value *out, tg_error *err) TG_MUST_CHECK;

void tg_scorer_get_stats(tg_scorer *scorer, tg_score_stats *out);

#endif
