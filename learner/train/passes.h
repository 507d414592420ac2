/* How large the passes of a run's iterations are: no larger than its memory plan counts on.
 *
 * A rollout has a number of tokens, not of episodes: where episodes may end early it may have more of them, and with them more prompts to go
 * through, and nobody knows before how many. The plan counts on whole answers and a little room; what a rollout has beyond that comes in
 * more passes. So a run takes the memory of its plan however long its answers are.
 *
 *     tg_passes_plan(&passes, settings, arch, &facts);       // the same for the plan and the run; both are borrowed
 *     tg_passes_fit(&need, &passes, rollout, &order, err);   // of one iteration */
#ifndef TG_TRAIN_PASSES_H
#define TG_TRAIN_PASSES_H

#include "learner/rl/algo.h"
#include "learner/rl/need.h"
#include "learner/train/memory_plan.h"

typedef struct tg_passes {
    const tg_train_settings *settings;
    const tg_arch *arch;
    tg_algo_plan plan; /* its caps are the config's: what a pass can be at most */
    tg_need most;      /* what the memory plan counts on */
    int longest;       /* tokens of an episode, which always fits; a seq2seq model's answer */
    int longest_src;   /* seq2seq: its prompt */
    bool bounded;      /* by the bytes of `most` */
} tg_passes;

void tg_passes_plan(tg_passes *out, const tg_train_settings *s, const tg_arch *arch,
                    const tg_memory_facts *f);
/* The largest of 256 sizes whose passes are within the plan. A function of the config, the rollout and its order alone: batches are cut
 * there, and the order of sums depends on it. */
tg_status tg_passes_fit(tg_need *out, const tg_passes *p, const tg_rollout *r,
                        const tg_order *order, tg_error *err) TG_MUST_CHECK;
/* Whether a rollout's log-probs are those of generation (tg_rollout.known). */
bool tg_passes_known(const tg_train_settings *s);

#endif
