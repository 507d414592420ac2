/* See pack.h. The last action of an episode is nobody's state, so it is never among the tokens. */
#include "learner/rl/pack.h"

#include "common/base/check.h"

#include <string.h>

static bool has_source(const tg_rollout *r) {
    return r->start_id >= 0;
}

tg_status tg_pack_init(tg_pack *p, const tg_rollout *r, tg_pass_caps caps, tg_arena *arena,
                       tg_error *err) {
    *p = (tg_pack){.caps = caps, .mask_words = r->masks ? r->mask_words : 0};
    struct {
        int32_t **array;
        size_t n;
    } all[] = {{&p->tokens, (size_t)caps.tokens},      {&p->offsets, (size_t)caps.seqs + 1},
               {&p->act_row, (size_t)caps.actions},    {&p->act_token, (size_t)caps.actions},
               {&p->src_tokens, (size_t)caps.src + 1}, {&p->src_offsets, (size_t)caps.seqs + 1}};
    for (size_t i = 0; i < TG_COUNT_OF(all); i++)
        if (!(*all[i].array = tg_arena_array(arena, all[i].n, sizeof(int32_t))))
            return tg_fail_nomem(err, all[i].n * sizeof(int32_t));
    size_t words = (size_t)caps.actions * (size_t)p->mask_words;
    if (words && !(p->mask = tg_arena_array(arena, words, sizeof *p->mask)))
        return tg_fail_nomem(err, words * sizeof *p->mask);
    tg_pack_clear(p);
    return TG_OK;
}

void tg_pack_clear(tg_pack *p) {
    p->batch = (tg_batch){.tokens = p->tokens,
                          .offsets = p->offsets,
                          .act_row = p->act_row,
                          .act_token = p->act_token,
                          .mask = p->mask};
    p->offsets[0] = p->src_offsets[0] = 0;
}

static int n_tokens(const tg_rollout *r, const tg_episode *ep, int n_states) {
    return has_source(r) ? n_states : ep->n_prompt + n_states - 1;
}

bool tg_pack_fits(const tg_pack *p, const tg_rollout *r, const tg_episode *ep, int n_states,
                  int n_actions) {
    const tg_batch *b = &p->batch;
    return b->n_seqs < p->caps.seqs && b->n_actions + n_actions <= p->caps.actions &&
           b->n_tokens + n_tokens(r, ep, n_states) <= p->caps.tokens &&
           (!has_source(r) || b->n_src + ep->n_prompt <= p->caps.src);
}

void tg_pack_sequence(tg_pack *p, const tg_rollout *r, const tg_episode *ep, int n_states) {
    tg_batch *b = &p->batch;
    const int32_t *actions = ep->tokens + ep->n_prompt;
    int n = b->n_tokens;
    if (has_source(r)) {
        memcpy(p->src_tokens + b->n_src, ep->tokens, (size_t)ep->n_prompt * sizeof(int32_t));
        b->n_src += ep->n_prompt;
        p->src_offsets[b->n_seqs + 1] = b->n_src;
        b->src_tokens = p->src_tokens;
        b->src_offsets = p->src_offsets;
        p->tokens[n++] = r->start_id;
    } else {
        memcpy(p->tokens + n, ep->tokens, (size_t)ep->n_prompt * sizeof(int32_t));
        n += ep->n_prompt;
    }
    p->first_state = n - 1;
    memcpy(p->tokens + n, actions, (size_t)(n_states - 1) * sizeof(int32_t));
    b->n_tokens = n + n_states - 1;
    p->offsets[++b->n_seqs] = b->n_tokens;
}

void tg_pack_action(tg_pack *p, const tg_rollout *r, const tg_episode *ep, int step) {
    size_t words = (size_t)p->mask_words;
    if (words)
        memcpy(p->mask + (size_t)p->batch.n_actions * words,
               r->masks + (size_t)(ep->first_action + step) * words, words * sizeof *p->mask);
    p->act_row[p->batch.n_actions] = p->first_state + step; /* the state before the action */
    p->act_token[p->batch.n_actions++] = ep->tokens[ep->n_prompt + step];
}

tg_batch tg_pack_batch(const tg_pack *p) {
    return p->batch;
}

tg_pass_caps tg_pack_seq2seq_caps(tg_pass_caps caps, int max_prompt, int max_new) {
    int64_t total = (int64_t)max_prompt + max_new, tokens = caps.tokens;
    caps.src = (int)TG_MAX(tokens * max_prompt / total, (int64_t)max_prompt);
    caps.tokens = (int)TG_MAX(tokens * max_new / total, (int64_t)max_new);
    return caps;
}
