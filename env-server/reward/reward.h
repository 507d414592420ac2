/* The contract of a reward function: from an episode so far to the reward of its newest token, with
 * a status.
 *
 * Registered in registry.c: one file and one line each. A reward is a step function; one that only
 * judges finished texts sets `terminal`, is called once at the end, and counts as 0 before. A value
 * that could not be had is a status, never a number.
 *
 * Threads: after open() a state is read-only (or guards itself): score() may run on any thread,
 * several at a time. */
#ifndef TG_ENV_REWARD_H
#define TG_ENV_REWARD_H

#include "common/base/status.h"
#include "env-server/entry.h"
#include "env-server/reward/details.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_reward_input {
    const tg_sample *sample; /* prompt_text, references, meta_json of the episode */
    const char *text;        /* completion so far, decoded; may hold NUL bytes */
    size_t text_len;
    const int32_t *tokens; /* completion so far, the newest last */
    size_t n_tokens;
    const char *before; /* completion without the newest token, for who wants it; NULL: none */
    size_t before_len;
    bool done;                  /* the newest token ended the episode */
    tg_reward_details *details; /* where named parts of the value may be told; NULL: nobody asks */
} tg_reward_input;

typedef struct tg_reward_value {
    tg_reward_status status;
    double value; /* NaN unless status is TG_REWARD_OK */
} tg_reward_value;

/* What the environment must know of an open function. */
typedef struct tg_reward_traits {
    bool terminal;     /* only a finished episode has a reward */
    bool wants_before; /* looks at the text without the newest token */
    bool slow;         /* runs on a pool thread, never on the server's loop */
    bool waits;        /* its thread only waits: it is had elsewhere, or in a pass for many texts */
    bool deterministic; /* a function of its input: scoring a text again gives the same number */
    bool
        remote; /* asked of reward workers: never offered to others, who may be asking on our behalf */
    bool ranked; /* judges all samples of a prompt together: one call of score() is one group */
} tg_reward_traits;

typedef struct tg_reward_ops {
    tg_entry entry;
    size_t state_size;
    bool terminal, wants_before, slow, waits, deterministic; /* see tg_reward_traits */
    /* Changes what follows from the options; in: the five above. May be NULL. */
    void (*traits)(const void *state, tg_reward_traits *traits);
    /* The functions inside this one: *n of them. NULL: it has none. */
    const struct tg_reward *(*inner)(const void *state, size_t *n);
    /* Either may be NULL. state is zeroed, ctx never NULL; close is called only after a successful open. */
    tg_status (*open)(void *state, const void *options, const tg_open_context *ctx, tg_error *err);
    void (*close)(void *state);
    /* Fills out[0 .. n). A failing return means that all n failed, for the reason in err; TG_BUSY:
     * nothing was judged, the same call may be made again. With TG_OK, err->msg may say why one of
     * them has no number. */
    tg_status (*score)(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err);
} tg_reward_ops;

const tg_registry *tg_reward_registry(void);

/* One open reward function. */
typedef struct tg_reward {
    const tg_reward_ops *ops;
    const char *name; /* of the component in results and logs; borrowed */
    double weight;    /* in the sum of all components */
    tg_reward_traits traits;
    void *state;
    struct tg_reward_meter *meter; /* borrowed (meter.h); NULL: nobody counts */
} tg_reward;

tg_status tg_reward_open(tg_reward *r, const tg_reward_ops *ops, const void *options,
                         const tg_open_context *ctx, tg_error *err) TG_MUST_CHECK;
void tg_reward_close(tg_reward *r); /* also of a zeroed one */

/* As ops->score, with every value validated: a failing call gives TG_REWARD_FAILED, a value that is
 * not finite TG_REWARD_INVALID. err->msg is the reason for what has no number, where one is known,
 * else "". */
tg_status tg_reward_score(const tg_reward *r, const tg_reward_input *in, size_t n,
                          tg_reward_value *out, tg_error *err);

#endif
