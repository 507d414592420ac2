/* What every registry of the environment server has in common: rows with a name, a summary and an
 * option table.
 *
 *     static const tg_reward_ops ops = {.entry = {.name = "bleu", ..., .built = true}, .score = ...};
 *
 * A built row is the first member of the kind's ops struct, so that a tg_entry * of a registry is
 * also a pointer to its ops. A planned row is an entry alone: its name and keys are known, and
 * choosing it says so. Adding a component is one file and one line. */
#ifndef TG_ENV_ENTRY_H
#define TG_ENV_ENTRY_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/option.h"
#include "common/config/tree.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tg_entry {
    const char *name, *summary; /* summary: one sentence */
    const tg_opt *options;      /* keys of `args`, ends with TG_OPT_END */
    size_t options_size;        /* of the struct the table describes */
    bool built;
} tg_entry;

typedef struct tg_registry {
    const char *kind;             /* "reward" */
    const tg_entry *const *built; /* NULL-terminated */
    const tg_entry *planned;      /* ends with a row without a name */
} tg_registry;

/* i-th row, built ones first; NULL behind the last. */
const tg_entry *tg_registry_at(const tg_registry *r, size_t i);
const tg_entry *tg_registry_find(const tg_registry *r, const char *name); /* NULL: unknown */

/* What a component learns of the run when it is opened. NULL where one is expected: all defaults. */
struct tg_datapool;
struct tg_security;
struct tg_judges;
typedef struct tg_open_context {
    bool compat;                     /* `compat: rl4lms`: reproduce RL4LMs's quirks */
    const struct tg_datapool *train; /* the run's training split, borrowed; NULL: there is none */
    struct tg_security *security;    /* keys for connections of components, borrowed; NULL: none */
    bool insecure;                   /* they may listen where others connect, without keys */
    struct tg_judges *judges; /* where models are shared (judge/judge.h), borrowed; NULL: nowhere */
} tg_open_context;

/* A component's zeroed state, opened. open NULL: nothing more to do; ctx NULL: all defaults. On failure *state is NULL. */
typedef tg_status tg_open_fn(void *state, const void *options, const tg_open_context *ctx,
                             tg_error *err);
tg_status tg_state_open(void **state, size_t size, tg_open_fn *open, const void *options,
                        const tg_open_context *ctx, tg_error *err) TG_MUST_CHECK;

/* A component chosen by a config section {id: …, args: {…}}. entry NULL: none was chosen. */
typedef struct tg_choice {
    const tg_entry *entry;
    void *options;    /* entry->options_size bytes in the arena, every default filled in */
    const char *path; /* "reward_fn", for messages */
    const char *file; /* where the id was written; line 0: nowhere */
    int line;
} tg_choice;

/* Reads the section. Unknown id: TG_CONFIG with the nearest known one. Known but not built is
 * accepted here. */
tg_status tg_choice_read(const tg_registry *r, const tg_node *section, const char *path,
                         tg_arena *arena, tg_choice *out, tg_error *err) TG_MUST_CHECK;
/* TG_UNSUPPORTED by name unless the chosen row is built. */
tg_status tg_choice_require_built(const tg_choice *c, tg_error *err) TG_MUST_CHECK;
/* {"id": …, "args": {…}}, or null. */
void tg_choice_json(const tg_choice *c, tg_buf *out);

#endif
