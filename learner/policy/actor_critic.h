/* The networks an on-policy algorithm trains: policy, critic (own network, or a head on the
 * policy's trunk) and the frozen reference, with their optimizer.
 *
 *     tg_actor_critic *ac;
 *     tg_actor_critic_open(&ac, be, &opts, err);
 *     tg_actor_critic_score(ac, &rollout, err);            // no gradient: log-probs, values, reference log-probs
 *     tg_actor_critic_forward(ac, &batch, logp, entropy, value, err);
 *     tg_actor_critic_backward(ac, dlogp, dentropy, dvalue, err);
 *     tg_actor_critic_apply(ac, lr, max_grad_norm, &norm, &applied, err);
 *
 * One engine generates, scores and trains: at the first minibatch of an iteration the probability ratio is 1.
 */
#ifndef TG_POLICY_ACTOR_CRITIC_H
#define TG_POLICY_ACTOR_CRITIC_H

#include "common/nn/model.h"
#include "common/nn/pass.h"
#include "learner/optim/optim.h"
#include "learner/policy/gen_settings.h"
#include "learner/policy/mask.h"
#include "learner/rl/rollout.h"

typedef enum tg_critic { TG_CRITIC_SEPARATE, TG_CRITIC_SHARED } tg_critic;

typedef struct tg_actor_critic_opts {
    const char *model_folder;
    tg_critic critic;
    bool reference; /* false: no reference model (supervised) */
    /* in memory; else (open only) it is read from the folder for each scoring */
    bool keep_reference;
    bool half_reference; /* (open only) in memory, its matrices as bf16 */
    /* TG_MODEL_TRAINABLE (also when 0) or TG_MODEL_TRAIN_LAST, of policy and critic; with TG_MODEL_ROUNDED the reference's products
     * are rounded too, so that the KL of equal networks is 0 */
    unsigned train;
    bool critic_only; /* the optimizer does not touch the policy */
    bool recompute;   /* activations are made again in backward */
    uint64_t seed;
    tg_mask_opts mask; /* of a maskable policy; it has a mask model then */
    tg_optim_opts optim;
    /* of the training passes (tg_algo_plan); scoring uses the same buffers */
    tg_pass_caps train_caps;
    int score_tokens; /* tokens per scoring pass; 0: as many as train_caps allow, which is also the
                         most */
} tg_actor_critic_opts;

typedef struct tg_actor_critic {
    /* read-only */
    tg_backend *be;
    tg_model *policy;
    tg_model *value;      /* == policy when shared; its value_head.weight is the head */
    tg_model *ref;        /* NULL: none */
    tg_model *mask_model; /* what masks are made from; NULL: the policy is not maskable */
    tg_mask_opts mask;
    tg_critic critic;
    tg_optim *optim; /* over policy and value together */
    /* of the passes that are made next; never more than those it was made with */
    tg_pass_caps caps;
    int score_tokens;
    /* private: made when they are needed, NULL while resting */
    tg_pass *policy_pass, *value_pass, *ref_pass;
    bool recompute, ref_rests;
    tg_batch last;   /* of the last forward, with compat masks: backward runs it again */
    float *mask_row; /* (caps.actions) for those */
} tg_actor_critic;

tg_status tg_actor_critic_open(tg_actor_critic **out, tg_backend *be,
                               const tg_actor_critic_opts *opts, tg_error *err) TG_MUST_CHECK;
/* The same from models in memory, which it takes over even when it fails (model_folder is not
 * read). policy: trainable, with a value head when shared. value: trainable with a value head; NULL
 * when shared. ref: NULL when opts->reference is false. */
tg_status tg_actor_critic_create(tg_actor_critic **out, const tg_actor_critic_opts *opts,
                                 tg_model *policy, tg_model *value, tg_model *ref,
                                 tg_error *err) TG_MUST_CHECK;
void tg_actor_critic_destroy(tg_actor_critic **ac);

/* Whether log-probs and values of generation with these settings are the policy's to rounding, so that a rollout need not have them
 * computed again (tg_rollout.known): one network without masks, f32 throughout, no beams. */
bool tg_actor_critic_knows(const tg_actor_critic *ac, const tg_gen_settings *s);
/* The same before there are networks; flags: the policy's. */
bool tg_critic_knows(tg_critic critic, bool masked, unsigned flags, const tg_gen_settings *s);
/* Fills logp, entropy and value, unless they are known, and ref_logp (0 without a reference) of every action of the rollout,
 * in passes of whole episodes. TG_DATA: a result is not finite. */
tg_status tg_actor_critic_score(tg_actor_critic *ac, tg_rollout *r, tg_error *err) TG_MUST_CHECK;

/* The policy interface of the algorithms, per action token of a packed batch. */
tg_status tg_actor_critic_forward(tg_actor_critic *ac, const tg_batch *batch, float *logp,
                                  float *entropy, float *value, tg_error *err) TG_MUST_CHECK;
tg_status tg_actor_critic_backward(tg_actor_critic *ac, const float *dlogp, const float *dentropy,
                                   const float *dvalue, tg_error *err) TG_MUST_CHECK;
/* The policy alone, and the critic alone, which is a network of its own then. */
tg_status tg_actor_critic_logp(tg_actor_critic *ac, const tg_batch *batch, float *logp,
                               tg_error *err) TG_MUST_CHECK;
tg_status tg_actor_critic_logp_backward(tg_actor_critic *ac, const float *dlogp,
                                        tg_error *err) TG_MUST_CHECK;
tg_status tg_actor_critic_values(tg_actor_critic *ac, const tg_batch *batch, float *value,
                                 tg_error *err) TG_MUST_CHECK;
tg_status tg_actor_critic_values_backward(tg_actor_critic *ac, const float *dvalue,
                                          tg_error *err) TG_MUST_CHECK;
/* Products with the policy's Fisher matrix, on the batches of tg_actor_critic_logp. */
struct tg_fisher;
tg_status tg_actor_critic_fisher(tg_actor_critic *ac, struct tg_fisher **out,
                                 tg_error *err) TG_MUST_CHECK;
/* The mask model becomes a copy of the policy; never, with compat masks. */
void tg_actor_critic_renew_mask(tg_actor_critic *ac);
/* Clips by the global norm over all trained parameters (factor max_norm / (norm + 1e-6), at most 1;
 * max_norm <= 0: none), takes one optimizer step, clears the gradients. A non-finite norm: nothing
 * is applied, gradients cleared, *applied = false. */
tg_status tg_actor_critic_apply(tg_actor_critic *ac, double lr, double max_grad_norm,
                                double *grad_norm, bool *applied, tg_error *err) TG_MUST_CHECK;

/* Gives back what only scoring and updates need: the buffers of the passes and the gradients, which are zero between updates. The
 * next call that needs them takes them again. */
void tg_actor_critic_rest(tg_actor_critic *ac);

#endif
