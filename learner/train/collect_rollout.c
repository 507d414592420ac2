/* The episodes that were collected, as a rollout. Those that failed count nowhere. */
#include "learner/train/collect_impl.h"

#include "common/base/alloc.h"
#include "common/nn/pass.h"

#include <string.h>

/* How long the episodes are that count, `n` of them; owned. */
static int (*lengths_of(const tg_collector *c, int n))[2] {
    int(*lengths)[2] = tg_alloc_array((size_t)n, sizeof *lengths);
    for (int i = 0, k = 0; lengths && i < c->n_records; i++) {
        if (!c->records[i].ok) continue;
        lengths[k][0] = c->records[i].n_prompt;
        lengths[k++][1] = c->records[i].n_actions;
    }
    return lengths;
}

/* Record i becomes episode e. */
static void copy_record(const tg_collector *c, int i, tg_rollout *to, int e) {
    const tg_record *r = &c->records[i];
    tg_episode *ep = &to->episodes[e];
    const size_t n = (size_t)r->n_actions, first = (size_t)ep->first_action;
    ep->id = c->first_episode + (uint64_t)i;
    ep->terminated = r->terminated;
    ep->truncated = r->truncated;
    memcpy(tg_rollout_tokens(to, e), r->tokens, ((size_t)r->n_prompt + n) * sizeof *r->tokens);
    memcpy(to->task_reward + first, r->rewards, n * sizeof *r->rewards);
    if (r->logp) {
        memcpy(to->logp + first, r->logp, n * sizeof *r->logp);
        memcpy(to->value + first, r->logp + c->opts.max_new, n * sizeof *r->logp);
    }
    const size_t words = (size_t)tg_mask_words(c->policy->arch.vocab_size);
    if (r->masks) memcpy(to->masks + first * words, r->masks, n * words * sizeof *r->masks);
}

tg_status tg_collect_build(const tg_collector *c, int rows, tg_rollout **out, tg_error *err) {
    const int n = c->n_records - c->failed;
    int(*lengths)[2] = lengths_of(c, n);
    if (!lengths) return tg_fail_nomem(err, (size_t)n * sizeof *lengths);
    tg_status st = tg_rollout_create(out, (const int(*)[2])lengths, n, rows, err);
    tg_free(lengths);
    if (st == TG_OK && c->opts.mask_model)
        st = tg_rollout_add_masks(*out, tg_mask_words(c->policy->arch.vocab_size), err);
    if (st != TG_OK) return st;
    (*out)->start_id = c->start_id;
    (*out)->known = c->opts.known;
    for (int i = 0, e = 0; i < c->n_records; i++)
        if (c->records[i].ok) copy_record(c, i, *out, e++);
    return TG_OK;
}
