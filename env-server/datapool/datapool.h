/* The contract of a data pool: the samples of one split, by index, read when asked for.
 *
 * Registered in registry.c: one file and one line each. After open() a pool is read-only and shared
 * by all threads; get() writes only into the caller's arena. A pool without samples is an error at
 * opening, except for a split that the config leaves out. */
#ifndef TG_ENV_DATAPOOL_H
#define TG_ENV_DATAPOOL_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/entry.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a pool learns of the run when it is opened. */
typedef struct tg_datapool_context {
    bool compat;                          /* `compat: rl4lms`: reproduce RL4LMs's quirks */
    uint64_t seed;                        /* the run's, for shuffles without a seed of their own */
    const struct tg_tokenizer *tokenizer; /* borrowed while the pool is open; NULL: there is none */
    size_t max_prompt_length;             /* in tokens; 0: unknown */
} tg_datapool_context;

typedef struct tg_datapool_ops {
    tg_entry entry;
    size_t state_size;
    bool integer_ids; /* ids are written as numbers, as RL4LMs has them */
    /* state is zeroed. *count may be 0 only for a split that the config leaves out. TG_NOINPUT: a
     * missing file, with what is expected there. close (may be NULL) is called only after a
     * successful open. */
    tg_status (*open)(void *state, const void *options, const tg_datapool_context *context,
                      tg_split split, uint64_t *count, tg_error *err);
    void (*close)(void *state);
    /* i < count. Fills id, prompt_text, references, meta_json ("" when there is none); strings live
     * in the arena or in the pool. */
    tg_status (*get)(const void *state, uint64_t i, tg_arena *arena, tg_sample *out, tg_error *err);
    /* Sampling weight of a sample, >= 0; NULL: all 1. */
    tg_status (*weight)(const void *state, uint64_t i, double *out, tg_error *err);
    uint64_t (*digest)(
        const void *state); /* of the content: equal on workers that see the same data */
} tg_datapool_ops;

const tg_registry *tg_datapool_registry(void);

/* One open split. */
typedef struct tg_datapool {
    const tg_datapool_ops *ops;
    void *state;
    uint64_t count;
} tg_datapool;

/* context NULL: all defaults. options must outlive the pool. */
tg_status tg_datapool_open(tg_datapool *p, const tg_datapool_ops *ops, const void *options,
                           const tg_datapool_context *context, tg_split split,
                           tg_error *err) TG_MUST_CHECK;
void tg_datapool_close(tg_datapool *p); /* also of a zeroed one */
/* out->index is set; the token fields stay empty. i >= count is TG_DATA. */
tg_status tg_datapool_get(const tg_datapool *p, uint64_t i, tg_arena *arena, tg_sample *out,
                          tg_error *err) TG_MUST_CHECK;
uint64_t tg_datapool_digest(const tg_datapool *p);

#endif
