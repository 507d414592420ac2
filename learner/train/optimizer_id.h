/* The optimizers a config may name (alg.policy.args.optimizer.id, or optimizer_class) and their arguments. */
#ifndef TG_TRAIN_OPTIMIZER_ID_H
#define TG_TRAIN_OPTIMIZER_ID_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "learner/optim/optim.h"

#include <stdbool.h>

typedef struct tg_optimizer_args {
    const tg_node *betas;     /* two numbers */
    double eps, weight_decay; /* weight_decay NaN: the policy's own */
    bool amsgrad;
    double alpha, momentum, dampening;
    bool centered, nesterov;
} tg_optimizer_args;

typedef struct tg_optimizer_id {
    const char *name, *summary; /* torch's class name, where torch has it */
    const char *kind;           /* of tg_optim_opts */
    const tg_opt *options;      /* of a tg_optimizer_args */
    const char *const *others;  /* further names, NULL-terminated */
} tg_optimizer_id;

const tg_optimizer_id *const *tg_optimizer_id_list(void); /* NULL-terminated */
/* By name, any case, "torch.optim." or "bitsandbytes.optim." before it allowed; NULL: unknown. */
const tg_optimizer_id *tg_optimizer_id_find(const char *name);

/* Reads and checks the arguments; `weight_decay` where they have none. *resolved: the arguments with every default, in the arena.
 * TG_UNSUPPORTED: amsgrad. */
tg_status tg_optimizer_args_read(const tg_optimizer_id *id, const tg_node *args, const char *path,
                                 double weight_decay, tg_arena *arena, tg_optim_opts *out,
                                 const tg_node **resolved, tg_error *err) TG_MUST_CHECK;

#endif
