/* Reward functions inside reward functions. The inner one is opened without options. */
#include "env-server/reward/shaping.h"

#include "common/base/alloc.h"

#include <string.h>

tg_status tg_shaping_open(tg_reward *out, const char *name, const tg_open_context *ctx,
                          tg_error *err) {
    memset(out, 0, sizeof *out);
    if (!name) return TG_OK;
    const tg_entry *e = tg_registry_find(tg_reward_registry(), name);
    if (!e)
        return tg_fail(err, TG_CONFIG,
                       "shaping_fn: unknown reward '%s'; `textgen list reward` shows them", name);
    if (!e->built)
        return tg_fail(err, TG_UNSUPPORTED,
                       "shaping_fn: '%s' is known but not built into this version", name);
    tg_arena arena = {0};
    void *options = tg_arena_alloc(&arena, e->options_size ? e->options_size : 1);
    tg_status st = options ? tg_opts_read(e->options, options, NULL, "shaping_fn", &arena, err)
                           : tg_fail_nomem(err, e->options_size);
    if (st == TG_OK) st = tg_reward_open(out, (const tg_reward_ops *)e, options, ctx, err);
    tg_arena_fini(&arena);
    return st;
}

tg_status tg_shaping_add(const tg_reward *shaping, const tg_reward_input *in, size_t n,
                         tg_reward_value *out, tg_error *err) {
    if (!shaping->ops) return TG_OK;
    tg_reward_value *more = tg_alloc_array(n, sizeof *more);
    if (!more) return tg_fail_nomem(err, n * sizeof *more);
    tg_status st = tg_reward_score(shaping, in, n, more, err);
    for (size_t i = 0; i < n && st == TG_OK; i++) {
        if (more[i].status != TG_REWARD_OK)
            out[i].status = more[i].status;
        else
            out[i].value += more[i].value;
    }
    tg_free(more);
    return st;
}
