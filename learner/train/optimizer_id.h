/* The optimizers a config may name (alg.policy.args.optimizer_class) and their optimizer_kwargs. */
#ifndef TG_TRAIN_OPTIMIZER_ID_H
#define TG_TRAIN_OPTIMIZER_ID_H

#include "common/base/status.h"
#include "common/config/option.h"

#include <stdbool.h>

typedef struct tg_optimizer_args {
    const tg_node *betas;     /* two numbers */
    double eps, weight_decay; /* weight_decay NaN: the policy's own */
    bool amsgrad;
} tg_optimizer_args;

typedef struct tg_optimizer_id {
    const char *name, *summary; /* torch's class name */
    const char *kind;           /* of tg_optim_opts; NULL: not built */
    const tg_opt *options;      /* of a tg_optimizer_args */
} tg_optimizer_id;

const tg_optimizer_id *const *tg_optimizer_id_list(void); /* NULL-terminated */
/* By class name, any case, "torch.optim." before it allowed; NULL: unknown. */
const tg_optimizer_id *tg_optimizer_id_find(const char *name);

#endif
