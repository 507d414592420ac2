/* RL4LMs's dummy_pool: the same prompt n times, no references, the same for every split; ids are
 * the numbers from 0. */
#include "common/base/hash.h"
#include "env-server/datapool/rows.h"

#include <stdio.h>
#include <string.h>

struct options {
    const char *prompt;
    int64_t n_samples;
};
static const tg_opt options[] = {
    TG_OPT_ROW(struct options, prompt, TG_T_STR, TG_OPT_REQUIRED, NULL, 0, 0, NULL,
               "The prompt of every sample."),
    TG_OPT_INT(struct options, n_samples, "100", 1, 1e12, "How many samples there are."),
    TG_OPT_END};

/* The options outlive the pool: both belong to the environment. */
static tg_status open_pool(void *state, const void *opts, const tg_datapool_context *context,
                           tg_split split, uint64_t *count, tg_error *err) {
    (void)context;
    (void)split;
    (void)err;
    struct options *o = state;
    *o = *(const struct options *)opts;
    *count = (uint64_t)o->n_samples;
    return TG_OK;
}

static tg_status get(const void *state, uint64_t i, tg_arena *arena, tg_sample *out,
                     tg_error *err) {
    const struct options *o = state;
    char id[24];
    snprintf(id, sizeof id, "%llu", (unsigned long long)i);
    out->id = tg_arena_strdup(arena, id);
    if (!out->id) return tg_fail_nomem(err, sizeof id);
    out->prompt_text = o->prompt;
    return TG_OK;
}

static uint64_t digest(const void *state) {
    const struct options *o = state;
    return tg_hash64(o->prompt, strlen(o->prompt)) ^ (uint64_t)o->n_samples;
}

const tg_datapool_ops tg_datapool_dummy = {
    .entry = {.name = "dummy_pool",
              .summary = "One prompt, many times.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct options),
    .integer_ids = true,
    .open = open_pool,
    .get = get,
    .digest = digest,
};
