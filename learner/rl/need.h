/* How large the passes of an iteration get. An algorithm's caps hold for any rollout; one rollout mostly needs less of them. Packing
 * within what it needs gives the same pieces as packing within the algorithm's caps, so the results are the same, bit by bit.
 *
 *     tg_need need;
 *     tg_need_rollout(&need, &plan, rollout, &order, err);       // before it is scored
 *     tg_need_even(&need, &plan, &lengths);                      // before there is one: for the memory plan */
#ifndef TG_RL_NEED_H
#define TG_RL_NEED_H

#include "learner/rl/algo.h"

/* Where the log-probs of a rollout are not known, the passes that score it are those of the update: then both are the same. */
typedef struct tg_need {
    tg_pass_caps score, update;
} tg_need;

tg_status tg_need_rollout(tg_need *out, const tg_algo_plan *plan, const tg_rollout *r,
                          const tg_order *order, tg_error *err) TG_MUST_CHECK;
/* Its parts; join: both as large as either. */
tg_status tg_need_scoring(tg_pass_caps *out, const tg_algo_plan *plan, const tg_rollout *r,
                          tg_error *err) TG_MUST_CHECK;
tg_status tg_need_update(tg_pass_caps *out, const tg_algo_plan *plan, const tg_rollout *r,
                         const tg_order *order, tg_error *err) TG_MUST_CHECK;
void tg_need_join(tg_need *need);

typedef struct tg_need_lengths {
    int n_rows;
    int prompt, answer; /* tokens of every episode */
    bool known;         /* as of a rollout */
} tg_need_lengths;
void tg_need_even(tg_need *out, const tg_algo_plan *plan, const tg_need_lengths *l);

#endif
