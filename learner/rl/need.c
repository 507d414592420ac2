/* See need.h. An iteration's order is a function of the seed: what its update will pack can be counted before it begins. */
#include "learner/rl/need.h"

#include "common/base/check.h"
#include "learner/rl/pack.h"

static void widen(tg_pass_caps *caps, const tg_batch *b) {
    caps->tokens = TG_MAX(caps->tokens, b->n_tokens);
    caps->seqs = TG_MAX(caps->seqs, b->n_seqs);
    caps->actions = TG_MAX(caps->actions, b->n_actions);
    caps->src = TG_MAX(caps->src, b->n_src);
}

/* Without the sizes. */
static tg_pass_caps empty(const tg_algo_plan *plan) {
    tg_pass_caps caps = plan->caps;
    caps.most_actions = caps.actions;
    caps.tokens = caps.seqs = caps.actions = caps.src = 0;
    return caps;
}

static void join(tg_pass_caps *caps, const tg_pass_caps *other) {
    widen(caps, &(tg_batch){.n_tokens = other->tokens,
                            .n_seqs = other->seqs,
                            .n_actions = other->actions,
                            .n_src = other->src});
}

void tg_need_join(tg_need *f) {
    join(&f->score, &f->update);
    f->update = f->score;
}

/* Whole episodes in their order, as tg_actor_critic_score packs them. */
static tg_status widen_for_scoring(tg_pass_caps *caps, const tg_algo_plan *plan,
                                   const tg_rollout *r, tg_error *err) {
    tg_arena arena = {0};
    tg_pack pack;
    tg_status st = tg_pack_init(&pack, r, plan->caps, &arena, err);
    for (int e = 0; st == TG_OK && e < r->n_episodes; e++) {
        const tg_episode *ep = &r->episodes[e];
        if (!tg_pack_fits(&pack, r, ep, ep->n_actions, ep->n_actions)) tg_pack_clear(&pack);
        tg_pack_sequence(&pack, r, ep, ep->n_actions);
        pack.batch.n_actions += ep->n_actions;
        widen(caps, &pack.batch);
    }
    tg_arena_fini(&arena);
    return st;
}

static tg_status widen_for(tg_pass_caps *caps, tg_minibatches *m, int k, tg_error *err) {
    tg_minibatch_piece piece;
    tg_status st = tg_minibatches_pack(m, k, err);
    while (st == TG_OK && tg_minibatches_next(m, &piece)) widen(caps, &piece.batch);
    return st;
}

static tg_status widen_for_share(tg_pass_caps *caps, const tg_algo_plan *plan, const tg_rollout *r,
                                 const tg_order *order, tg_error *err) {
    tg_minibatches *m = NULL;
    tg_status st =
        tg_minibatches_draw(&m, r, plan->mode, plan->first_share, plan->caps, order, err);
    if (st == TG_OK) st = widen_for(caps, m, 0, err);
    tg_minibatches_destroy(&m);
    return st;
}

/* Epochs [first, end). */
static tg_status widen_for_epochs(tg_pass_caps *caps, const tg_algo_plan *plan, const tg_rollout *r,
                                  const tg_order *order, int batch_size, int first, int end,
                                  tg_error *err) {
    tg_minibatches *m = NULL;
    tg_status st = tg_minibatches_create(&m, r, plan->mode, batch_size, plan->caps, err);
    for (int epoch = first; st == TG_OK && epoch < end; epoch++) {
        st = tg_minibatches_shuffle(m, order, epoch, err);
        for (int k = 0; st == TG_OK && k < m->n; k++) st = widen_for(caps, m, k, err);
    }
    tg_minibatches_destroy(&m);
    return st;
}

tg_status tg_need_scoring(tg_pass_caps *out, const tg_algo_plan *plan, const tg_rollout *r,
                          tg_error *err) {
    *out = empty(plan);
    return widen_for_scoring(out, plan, r, err);
}

tg_status tg_need_update(tg_pass_caps *out, const tg_algo_plan *plan, const tg_rollout *r,
                         const tg_order *order, tg_error *err) {
    *out = empty(plan);
    const int batch_size = TG_MIN(plan->batch_size, r->n_rows), first = plan->first_share > 0;
    tg_status st = first ? widen_for_share(out, plan, r, order, err) : TG_OK;
    if (st == TG_OK)
        st = widen_for_epochs(out, plan, r, order, batch_size, first, plan->epochs, err);
    return st;
}

tg_status tg_need_rollout(tg_need *out, const tg_algo_plan *plan, const tg_rollout *r,
                          const tg_order *order, tg_error *err) {
    tg_status st = tg_need_scoring(&out->score, plan, r, err);
    if (st == TG_OK) st = tg_need_update(&out->update, plan, r, order, err);
    if (st == TG_OK && !r->known) tg_need_join(out);
    return st;
}

/* ---- before there is a rollout ---- */

static tg_pass_caps caps_of(const tg_algo_plan *plan, const tg_need_lengths *l, int episodes) {
    tg_pass_caps caps = empty(plan);
    const bool seq2seq = plan->caps.src > 0;
    const int64_t answers = (int64_t)episodes * l->answer;
    const int64_t prompts = (int64_t)episodes * l->prompt;
    const int64_t tokens = seq2seq ? answers : answers + prompts - episodes;
    caps.tokens = (int)TG_MIN(tokens, (int64_t)plan->caps.tokens);
    caps.src = (int)TG_MIN(prompts, (int64_t)plan->caps.src);
    caps.seqs = TG_MIN(episodes, plan->caps.seqs);
    caps.actions = (int)TG_MIN(answers, (int64_t)plan->caps.actions);
    return caps;
}

/* Minibatches of so many rows. */
static tg_pass_caps update_caps(const tg_algo_plan *plan, const tg_need_lengths *l, int fitting,
                                int64_t batch) {
    const bool whole = plan->mode == TG_MINIBATCH_SEQUENCE;
    const int64_t batches = (l->n_rows + batch - 1) / batch, answer = l->answer;
    const int64_t all = (l->n_rows + answer - 1) / answer;
    /* A minibatch of sequences has the episodes whose middles lie in its share of the rows: as many as the share holds, rounded up. */
    const int64_t in_batch = whole ? (l->n_rows + batches * answer - 1) / (batches * answer) : batch;
    tg_pass_caps caps = caps_of(plan, l, (int)TG_MIN(TG_MIN(in_batch, all), fitting));
    /* A minibatch of transitions takes a few rows of many episodes: it has as many actions as rows. */
    if (!whole) caps.actions = (int)TG_MIN(caps.actions, batch);
    return caps;
}

void tg_need_even(tg_need *out, const tg_algo_plan *plan, const tg_need_lengths *l) {
    const tg_pass_caps *caps = &plan->caps;
    const bool seq2seq = caps->src > 0;
    const int64_t batch = TG_MIN(plan->batch_size, l->n_rows);
    const int all = (l->n_rows + l->answer - 1) / l->answer;
    int fitting = caps->tokens / (seq2seq ? l->answer : l->prompt + l->answer - 1);
    if (seq2seq) fitting = TG_MIN(fitting, caps->src / l->prompt);
    fitting = TG_MAX(TG_MIN(fitting, TG_MIN(caps->seqs, caps->actions / l->answer)), 1);
    out->score = caps_of(plan, l, TG_MIN(all, fitting));
    out->update = update_caps(plan, l, fitting, batch);
    if (plan->first_share) {
        const int64_t share = ((int64_t)l->n_rows + plan->first_share - 1) / plan->first_share;
        const tg_pass_caps first = update_caps(plan, l, fitting, share);
        join(&out->update, &first);
    }
    if (!l->known) tg_need_join(out);
}
