/* The table of optimizers, by the class names configs use. */
#include "learner/train/optimizer_id.h"

#include "common/base/str.h"

#include <string.h>
#include <strings.h>

static const tg_opt adamw_options[] = {
    TG_OPT_ROW(tg_optimizer_args, betas, TG_T_NODE, TG_OPT_NULLABLE, "[0.9, 0.999]", 0, 0, NULL,
               "Decay of the two moment averages."),
    TG_OPT_FLOAT(tg_optimizer_args, eps, "1e-8", 0, 1, "Added to the root of the second moment."),
    TG_OPT_FLOAT_OR_NULL(tg_optimizer_args, weight_decay, 0, 1e3,
                         "Overrides the policy's weight_decay."),
    TG_OPT_BOOL(tg_optimizer_args, amsgrad, "false", "Not built: must be false."), TG_OPT_END};

static const tg_optimizer_id adamw = {
    "AdamW", "Adam with decoupled weight decay (Loshchilov and Hutter 2019)", "adamw",
    adamw_options};
static const tg_optimizer_id adam = {"Adam", "Adam (Kingma and Ba 2015)", NULL, adamw_options};
static const tg_optimizer_id rmsprop = {"RMSprop", "RMSprop, the optimizer of A2C", NULL,
                                        adamw_options};
static const tg_optimizer_id sgd = {"SGD", "stochastic gradient descent", NULL, adamw_options};

const tg_optimizer_id *const *tg_optimizer_id_list(void) {
    static const tg_optimizer_id *const all[] = {&adamw, &adam, &rmsprop, &sgd, NULL};
    return all;
}

const tg_optimizer_id *tg_optimizer_id_find(const char *name) {
    if (tg_str_starts(name, "torch.optim.")) name += strlen("torch.optim.");
    for (const tg_optimizer_id *const *o = tg_optimizer_id_list(); *o; o++)
        if (!strcasecmp((*o)->name, name)) return *o;
    return NULL;
}
