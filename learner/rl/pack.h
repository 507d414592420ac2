/* Episodes as sequences of a packed batch. A causal model reads the prompt and the actions as one sequence; a seq2seq model has the
 * prompt as its source, and its decoder reads the start token and the actions.
 *
 *     tg_pack_clear(&p);
 *     if (tg_pack_fits(&p, r, ep, n_states, n_actions)) {
 *         tg_pack_sequence(&p, r, ep, n_states);           // as far as the state of its last action
 *         tg_pack_action(&p, r, ep, step);                   // any of them, in any order
 *     }
 *     tg_batch b = tg_pack_batch(&p); */
#ifndef TG_RL_PACK_H
#define TG_RL_PACK_H

#include "common/base/arena.h"
#include "common/nn/pass.h"
#include "learner/rl/rollout.h"

typedef struct tg_pack {
    tg_pass_caps caps;
    int32_t *tokens, *offsets, *act_row, *act_token, *src_tokens, *src_offsets;
    uint32_t *mask; /* (actions, mask_words) */
    int mask_words; /* 0: without masks */
    tg_batch batch;
    int first_state; /* row of the last sequence's first state */
} tg_pack;

/* Arrays for the rollout's episodes within the caps, in the arena. */
tg_status tg_pack_init(tg_pack *p, const tg_rollout *r, tg_pass_caps caps, tg_arena *arena,
                       tg_error *err) TG_MUST_CHECK;
void tg_pack_clear(tg_pack *p);
/* Whether a sequence of the episode's first n_states states, n_actions of them wanted, still has room. */
bool tg_pack_fits(const tg_pack *p, const tg_rollout *r, const tg_episode *ep, int n_states,
                  int n_actions);
void tg_pack_sequence(tg_pack *p, const tg_rollout *r, const tg_episode *ep, int n_states);
void tg_pack_action(tg_pack *p, const tg_rollout *r, const tg_episode *ep, int step);
tg_batch tg_pack_batch(const tg_pack *p); /* valid until the next clear */

/* Caps in which max_prompt and max_new share the tokens as a seq2seq model's source and decoder. */
tg_pass_caps tg_pack_seq2seq_caps(tg_pass_caps caps, int max_prompt, int max_new);

#endif
