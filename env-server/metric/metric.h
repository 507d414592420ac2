/* The contract of a metric: from generations of one split to named corpus values, with values per
 * sample where there are any.
 *
 * Registered in registry.c: one file and one line each. Keys are RL4LMs's ("lexical/rouge_rouge1").
 * After open() a state is read-only: compute() may run on any thread, several at a time. */
#ifndef TG_ENV_METRIC_H
#define TG_ENV_METRIC_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/entry.h"
#include "proto/messages.h"

#include <stddef.h>

typedef struct tg_metric_item {
    const tg_sample *sample; /* prompt_text, references, meta_json */
    const char *text;        /* what was generated; may hold NUL bytes */
    size_t text_len;
} tg_metric_item;

enum { TG_METRIC_ALL_THREADS = -1 };

typedef struct tg_metric_input {
    const tg_metric_item *items;
    size_t n; /* at least 1 */
    tg_split split;
    int threads; /* a metric may use; 0 or 1: only the caller's. Results do not depend on it */
} tg_metric_input;

/* Collects values; everything lives in the arena. */
typedef struct tg_metric_out {
    tg_arena *arena;
    tg_metric_value *values;
    size_t n, cap;
} tg_metric_out;

/* samples: n_samples values, copied, or NULL when the metric has none. key is copied. */
tg_status tg_metric_emit(tg_metric_out *out, const char *key, double corpus, const double *samples,
                         size_t n_samples, tg_error *err) TG_MUST_CHECK;
/* A key without a value, and why. */
tg_status tg_metric_emit_error(tg_metric_out *out, const char *key, const char *why,
                               tg_error *err) TG_MUST_CHECK;

typedef struct tg_metric_ops {
    tg_entry entry;
    size_t state_size;
    /* Either may be NULL. state is zeroed, ctx never NULL; close is called only after a successful open. */
    tg_status (*open)(void *state, const void *options, const tg_open_context *ctx, tg_error *err);
    void (*close)(void *state);
    tg_status (*compute)(const void *state, const tg_metric_input *in, tg_metric_out *out,
                         tg_error *err);
} tg_metric_ops;

const tg_registry *tg_metric_registry(void);

typedef struct tg_metric {
    const tg_metric_ops *ops;
    void *state;
} tg_metric;

tg_status tg_metric_open(tg_metric *m, const tg_metric_ops *ops, const void *options,
                         const tg_open_context *ctx, tg_error *err) TG_MUST_CHECK;
void tg_metric_close(tg_metric *m); /* also of a zeroed one */
/* A metric that fails becomes an error value under its own name; only TG_NOMEM is returned. */
tg_status tg_metric_compute(const tg_metric *m, const tg_metric_input *in, tg_metric_out *out,
                            tg_error *err) TG_MUST_CHECK;

#endif
