/* The table of optimizers, by the class names configs use, and what their arguments mean. */
#include "learner/train/optimizer_id.h"

#include "common/base/str.h"
#include "learner/train/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define S tg_optimizer_args
/* Not 0, which torch takes: a number without a gradient so far would be 0 / 0. */
#define EPS                                                                                        \
    TG_OPT_FLOAT(S, eps, "1e-8", TG_OPTIM_EPS_MIN, 1, "Added to the root of the second moment.")
#define DECAY TG_OPT_FLOAT_OR_NULL(S, weight_decay, 0, 1e3, "Overrides the policy's weight_decay.")
#define MOMENTUM TG_OPT_FLOAT(S, momentum, "0.0", 0, 1e3, "Share of the last step that is kept.")
#define BETAS                                                                                      \
    TG_OPT_ROW(S, betas, TG_T_NODE, TG_OPT_NULLABLE, "[0.9, 0.999]", 0, 0, NULL,                   \
               "Decay of the two moment averages.")

static const tg_opt adam_options[] = {
    BETAS, EPS, DECAY, TG_OPT_BOOL(S, amsgrad, "false", "Not built: must be false."), TG_OPT_END};
static const tg_opt adam8_options[] = {BETAS, EPS, DECAY, TG_OPT_END};
static const tg_opt rmsprop_options[] = {
    TG_OPT_FLOAT(S, alpha, "0.99", 0, 1, "Decay of the average of squares."),
    EPS,
    DECAY,
    MOMENTUM,
    TG_OPT_BOOL(S, centered, "false", "Divide by the deviation in place of the root mean square."),
    TG_OPT_END};
static const tg_opt sgd_options[] = {
    MOMENTUM, TG_OPT_FLOAT(S, dampening, "0.0", -1e3, 1e3, "Dampens what a gradient adds to it."),
    DECAY, TG_OPT_BOOL(S, nesterov, "false", "Look ahead; needs momentum and no dampening."),
    TG_OPT_END};
#undef S

static const char *const none[] = {NULL};
static const char *const eight[] = {"AdamW8bit", "adamw_bnb_8bit", NULL};
static const tg_optimizer_id adamw = {
    "AdamW", "Adam with decoupled weight decay (Loshchilov and Hutter 2019)", "adamw", adam_options,
    none};
static const tg_optimizer_id adam8 = {
    "adamw_8bit", "AdamW whose moments are kept in 8 bits by blocks (Dettmers et al. 2022)",
    "adamw_8bit", adam8_options, eight};
static const tg_optimizer_id adam = {
    "Adam", "Adam (Kingma and Ba 2015); weight decay goes through the gradient", "adam",
    adam_options, none};
static const tg_optimizer_id rmsprop = {"RMSprop", "RMSprop, the optimizer of A2C", "rmsprop",
                                        rmsprop_options, none};
static const tg_optimizer_id sgd = {"SGD", "stochastic gradient descent", "sgd", sgd_options, none};

const tg_optimizer_id *const *tg_optimizer_id_list(void) {
    static const tg_optimizer_id *const all[] = {&adamw, &adam8, &adam, &rmsprop, &sgd, NULL};
    return all;
}

const tg_optimizer_id *tg_optimizer_id_find(const char *name) {
    static const char *const modules[] = {"torch.optim.", "bitsandbytes.optim."};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (tg_str_starts(name, modules[i])) name += strlen(modules[i]);
    for (const tg_optimizer_id *const *o = tg_optimizer_id_list(); *o; o++) {
        if (!strcasecmp((*o)->name, name)) return *o;
        for (const char *const *other = (*o)->others; *other; other++)
            if (!strcasecmp(*other, name)) return *o;
    }
    return NULL;
}

static tg_status read_betas(const tg_optimizer_args *args, const tg_node *given, const char *path,
                            tg_optim_opts *out, tg_error *err) {
    double *to[2] = {&out->beta1, &out->beta2};
    char at[160];
    snprintf(at, sizeof at, "%s.betas", path);
    for (size_t i = 0; args->betas && i < 2; i++)
        if (args->betas->kind != TG_NODE_LIST || args->betas->n_items != 2 ||
            !tg_node_float(args->betas->items[i], to[i]) || !(*to[i] >= 0 && *to[i] < 1))
            return tg_node_fail(given, at, err,
                                "expected two numbers in [0, 1), such as [0.9, 0.999]");
    return TG_OK;
}

tg_status tg_optimizer_args_read(const tg_optimizer_id *id, const tg_node *given, const char *path,
                                 double weight_decay, tg_arena *arena, tg_optim_opts *out,
                                 const tg_node **resolved, tg_error *err) {
    tg_optimizer_args args;
    memset(&args, 0, sizeof args);
    *out = (tg_optim_opts){.kind = id->kind};
    tg_status st = tg_opts_read(id->options, &args, given, path, arena, err);
    if (st == TG_OK) st = read_betas(&args, given, path, out, err);
    if (st != TG_OK) return st;
    if (args.amsgrad)
        return tg_fail(err, TG_UNSUPPORTED, "%s.amsgrad is known, but not built into this version",
                       path);
    if (args.nesterov && (args.momentum <= 0 || args.dampening != 0))
        return tg_node_fail(given, path, err,
                            "nesterov needs a momentum above 0 and no dampening (found %g, %g)",
                            args.momentum, args.dampening);
    out->eps = args.eps;
    out->weight_decay = isnan(args.weight_decay) ? weight_decay : args.weight_decay;
    out->alpha = args.alpha;
    out->momentum = args.momentum;
    out->dampening = args.dampening;
    out->centered = args.centered;
    out->nesterov = args.nesterov;
    return tgi_resolved_node(id->options, &args, path, arena, resolved, err);
}
