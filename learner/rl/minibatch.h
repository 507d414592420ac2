/* Minibatches of a rollout: in which order rows are visited, and how the rows of one minibatch are
 * packed into passes.
 *
 *     tg_minibatches *m;
 *     tg_minibatches_create(&m, rollout, TG_MINIBATCH_SEQUENCE, batch_size, caps, err);
 *     tg_minibatches_shuffle(m, order, epoch, err);
 *     for (int k = 0; k < m->n; k++) {
 *         const int32_t *rows = m->rows + m->first[k];  int n = m->first[k + 1] - m->first[k];
 *         tg_minibatches_pack(m, k, err);
 *         while (tg_minibatches_next(m, &piece)) ...    // a tg_batch and, per action, its place in `rows`
 *     }
 *
 * transition: consecutive slices of batch_size rows of a permutation, as RL4LMs draws them.
 * sequence: whole episodes in random order, cut into as many minibatches as `transition` makes, of
 * about batch_size rows each; an episode goes where its middle falls. Either way the rows of one
 * episode in one minibatch share one sequence, which ends at the last state needed. A minibatch
 * larger than the caps of a pass comes in several pieces of whole sequences. */
#ifndef TG_RL_MINIBATCH_H
#define TG_RL_MINIBATCH_H

#include "common/nn/pass.h"
#include "learner/rl/rollout.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tg_minibatch_mode { TG_MINIBATCH_SEQUENCE, TG_MINIBATCH_TRANSITION } tg_minibatch_mode;
tg_minibatch_mode tg_minibatch_mode_find(const char *name); /* "transition", else sequence */

/* Where the order comes from: counter-based (seed, iteration, epoch), or given permutations of the
 * rows. */
typedef struct tg_order {
    uint64_t seed, iteration;
    uint64_t n_iterations; /* of the run, for schedules; 0: not known, everything stays constant */
    const int32_t *const *permutations; /* per epoch (n_rows), or NULL */
    int n_permutations;
    const float *noise; /* TRPO: normal numbers where the conjugate gradient starts, or NULL */
} tg_order;

typedef struct tg_minibatches {
    /* read-only, after shuffle: minibatch k is rows[first[k]] .. rows[first[k + 1] - 1] */
    int n;
    int32_t *rows;
    int *first;
    struct tg_minibatch_state *state; /* private */
} tg_minibatches;

typedef struct tg_minibatch_piece {
    tg_batch batch;
    const int32_t *place; /* (batch.n_actions): index within the minibatch */
} tg_minibatch_piece;

/* The rollout is borrowed. */
tg_status tg_minibatches_create(tg_minibatches **out, const tg_rollout *r, tg_minibatch_mode mode,
                                int batch_size, tg_pass_caps caps, tg_error *err) TG_MUST_CHECK;
void tg_minibatches_destroy(tg_minibatches **m);

/* TG_DATA: a given permutation is missing or is none. Order of sequences from a permutation: by
 * first appearance. */
tg_status tg_minibatches_shuffle(tg_minibatches *m, const tg_order *order, int epoch,
                                 tg_error *err) TG_MUST_CHECK;

/* One minibatch of an n-th of the rows, n = share, in the order of epoch 0: minibatch 0. */
tg_status tg_minibatches_draw(tg_minibatches **out, const tg_rollout *r, tg_minibatch_mode mode,
                              int share, tg_pass_caps caps, const tg_order *order,
                              tg_error *err) TG_MUST_CHECK;

/* Prepares the pieces of minibatch k; TG_BUG when a single sequence is longer than the caps. */
tg_status tg_minibatches_pack(tg_minibatches *m, int k, tg_error *err) TG_MUST_CHECK;
bool tg_minibatches_next(tg_minibatches *m,
                         tg_minibatch_piece *out); /* false: no more; valid until the next call */

/* Caps of a pass that takes any minibatch, whole if it fits into max_tokens, else in pieces. */
tg_pass_caps tg_minibatch_caps(int batch_size, int n_rows, int max_sequence, int max_tokens);

#endif
