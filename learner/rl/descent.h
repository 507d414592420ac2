/* Gradient descent on the minibatches of a rollout: what PPO, NLPO and A2C share. The algorithm says what the loss of a row is and
 * how often to go over the rows; the networks' passes, the clipping of the gradient and the counting are here.
 *
 *     tg_descent d;
 *     tg_descent_open(&d, ac, r, &opts, probe, stats, err);
 *     for each epoch:  tg_descent_epoch(&d, order, epoch, err);        // a step for every minibatch
 *     tg_descent_close(&d);
 *
 * Invariant: weights change only in tg_actor_critic_apply, once per minibatch, and never by a loss or gradient that is not finite. */
#ifndef TG_RL_DESCENT_H
#define TG_RL_DESCENT_H

#include "learner/rl/algo.h"
#include "learner/rl/loss.h"

typedef struct tg_descent_opts {
    const char *name; /* of the algorithm, for the log */
    tg_loss_fn *loss;
    tg_loss_coefs coefs;
    tg_minibatch_mode mode;
    int64_t batch_size;
    bool normalize_advantage; /* within each minibatch */
    double learning_rate, max_grad_norm;
    double target_kl; /* NaN: no early stop */
} tg_descent_opts;

typedef struct tg_descent_tally {
    double policy, value, entropy, loss, clip; /* sums over the minibatches not skipped */
    double kl;                                 /* sum over those of the last epoch */
    double norm;                               /* sum over those applied */
    int n, n_epoch, n_norm;
} tg_descent_tally;

typedef struct tg_descent {
    /* read-only */
    tg_descent_tally tally;
    tg_update_stats *stats;
    /* private */
    tg_descent_opts o;
    tg_actor_critic *ac;
    const tg_rollout *r;
    const tg_update_probe *probe;
    tg_minibatches *mb;
    float *adv, *logp, *entropy, *value; /* of the minibatch, in its order */
    float *piece[7], *grad[3];           /* of a piece: what the loss reads and what it gives */
    float *block;
} tg_descent;

/* Everything is borrowed until close, which is also called after a failure. */
tg_status tg_descent_open(tg_descent *d, tg_actor_critic *ac, const tg_rollout *r,
                          const tg_descent_opts *o, const tg_update_probe *probe,
                          tg_update_stats *stats, tg_error *err) TG_MUST_CHECK;
void tg_descent_close(tg_descent *d);
/* One pass over the rows; stats->stopped: target_kl was exceeded, the rest is left out. */
tg_status tg_descent_epoch(tg_descent *d, const tg_order *order, int epoch,
                           tg_error *err) TG_MUST_CHECK;

/* A rate at this iteration: learner/optim/schedule.h over the iterations of the run. */
double tg_scheduled(const char *kind, double peak, int64_t warmup, const tg_order *order);

/* Adds a number to the statistics. */
void tg_stats_put(tg_update_stats *s, const char *name, double value);

#endif
