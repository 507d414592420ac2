/* Checkpoints: <run>/checkpoints/checkpoint_<k>/, k the number of finished iterations (or steps), everything a run needs to go on as if
 * it had never stopped.
 *
 *     state.json                       counters, KL coefficient, seed, config digest, sizes of the jsonl files, checksums
 *     <net>.safetensors                parameters: policy, value when it is a network of its own, mask
 *     <net>.moment<i>.safetensors      optimizer state, tensor by tensor
 *
 * Written beside as checkpoint_<k>.tmp, synced, renamed: a checkpoint is whole or absent. One of the same number stays until it is
 * exchanged for the new one. */
#ifndef TG_TRAIN_CHECKPOINT_H
#define TG_TRAIN_CHECKPOINT_H

#include "common/base/status.h"
#include "common/nn/model.h"
#include "learner/optim/optim.h"

#include <stdbool.h>
#include <stdint.h>

/* The files that grow with a run and are cut back to where the checkpoint was taken. */
enum { TG_ARTIFACTS = 5 };
extern const char *const tg_artifact_names[TG_ARTIFACTS];

typedef struct tg_run_state {
    int64_t iteration;     /* finished */
    bool evaluated;        /* the evaluation due after it has been written */
    uint64_t next_episode; /* on-policy: first one not started */
    double kl_coeff;
    double loss_sum; /* supervised: since the last log line */
    int64_t loss_n;
    int64_t skipped;             /* steps left out as non-finite, of the whole run */
    double score;                /* mean reward since the last checkpoint: which one is best */
    int64_t sizes[TG_ARTIFACTS]; /* bytes */
    /* of the run as a whole */
    uint64_t seed, digest;
} tg_run_state;

/* What is saved: borrowed. */
typedef struct tg_checkpoint_nets {
    tg_model *model[3];
    const char *name[3]; /* "policy", "value", "mask" */
    int slot[3];         /* which of the optimizer's models it is, -1: none */
    int n;
    tg_optim *optim;
} tg_checkpoint_nets;

/* Sizes of the artifacts now (0: not there); also syncs them, so that a checkpoint never promises
 * more than the disk has. */
tg_status tg_artifacts_measure(const char *run_dir, int64_t sizes[TG_ARTIFACTS],
                               tg_error *err) TG_MUST_CHECK;
/* TG_DATA when one is shorter than it should be; then none is touched. */
tg_status tg_artifacts_truncate(const char *run_dir, const int64_t sizes[TG_ARTIFACTS],
                                tg_error *err) TG_MUST_CHECK;

tg_status tg_checkpoint_save(const char *run_dir, const tg_run_state *state,
                             const tg_checkpoint_nets *nets, tg_error *err) TG_MUST_CHECK;

/* Loads the newest checkpoint that is whole and belongs to this run (seed and digest of *state)
 * into *state and the nets, and cuts the artifacts back. Others are skipped with a log line saying
 * why. *found false: there is no checkpoint at all, nothing was changed. TG_DATA: there are some,
 * and none can be used. */
tg_status tg_checkpoint_resume(const char *run_dir, tg_run_state *state,
                               const tg_checkpoint_nets *nets, bool *found,
                               tg_error *err) TG_MUST_CHECK;

/* Removes all but the `keep` up to number `newest`, the one saved last, and if wanted the one with the best score; and what an
 * interrupted save left. Those beyond it were skipped by a resume: they count for nothing, and stay until they are saved anew. keep 0: all
 * stay. */
tg_status tg_checkpoint_prune(const char *run_dir, int64_t newest, int64_t keep, bool keep_best,
                              tg_error *err) TG_MUST_CHECK;

#endif
