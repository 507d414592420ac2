/* The way from a reward's inputs through its scorer, and the statistics of a tree of rewards. */
#include "env-server/reward/external.h"

#include "common/base/alloc.h"

#include <string.h>

tg_status tg_external_open(tg_external *x, const tg_external_opts *o, const char *name,
                           const char *identity, const tg_score_ops *ops, void *backend,
                           tg_error *err) {
    size_t name_len = strlen(name) + 1;
    x->identity = tg_alloc(name_len + strlen(identity) + 1);
    if (!x->identity) return tg_fail_nomem(err, name_len + strlen(identity));
    memcpy(x->identity, name, name_len);
    memcpy(x->identity + name_len, identity, strlen(identity) + 1);
    x->traits = (tg_reward_traits){.terminal = !o->per_token,
                                   .slow = true,
                                   .waits = true,
                                   .deterministic = o->deterministic,
                                   .ranked = o->ranked};
    if (o->ranked && o->per_token)
        return tg_fail(err, TG_CONFIG, "%s: ranked and per_token exclude each other", name);
    const tg_score_opts opts = {.name = x->identity,
                                .identity = x->identity + name_len,
                                .max_batch = (size_t)o->max_batch,
                                .max_wait_ms = (uint32_t)o->max_wait_ms,
                                .concurrency = (int)o->concurrency,
                                .max_queue = (size_t)o->max_queue,
                                .timeout_ms = (uint32_t)o->timeout_ms,
                                .retries = (int)o->retries,
                                .cache = (size_t)o->cache,
                                .breaker_ms = (uint32_t)o->breaker_ms,
                                .deterministic = o->deterministic,
                                .ranked = o->ranked};
    return tg_scorer_create(&x->scorer, &opts, ops, backend, err);
}

void tg_external_close(tg_external *x) {
    tg_scorer_destroy(&x->scorer);
    tg_free(x->identity);
    x->identity = NULL;
}

void tg_external_traits(const void *state, tg_reward_traits *traits) {
    *traits = ((const tg_external *)state)->traits;
}

/* Texts on their way count as 0 where only finished ones are judged, as with every terminal reward. */
tg_status tg_external_score(const void *state, const tg_reward_input *in, size_t n,
                            tg_reward_value *out, tg_error *err) {
    const tg_external *x = state;
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = (tg_reward_value){TG_REWARD_OK, 0};
        done += in[i].done;
    }
    if (!x->traits.terminal || done == n) return tg_scorer_score(x->scorer, in, n, out, err);
    for (size_t i = 0; i < n; i++) {
        tg_status st = in[i].done ? tg_scorer_score(x->scorer, &in[i], 1, &out[i], err) : TG_OK;
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

/* ---- statistics ---------------------------------------------------------------------------- */

void tg_reward_figures(const tg_reward *r, tg_stats *to) {
    size_t n = 0;
    const tg_reward *inner = r->ops && r->ops->inner ? r->ops->inner(r->state, &n) : NULL;
    for (size_t i = 0; i < n; i++) tg_reward_figures(&inner[i], to);
    if (!r->ops || r->ops->score != tg_external_score) return;
    tg_score_stats stats;
    tg_scorer_get_stats(((const tg_external *)r->state)->scorer, &stats);
    tg_score_stats_show(&stats, r->name, to);
}
