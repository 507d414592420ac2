/* The optimizer of a run: alg.policy.args.optimizer, or RL4LMs's optimizer_class and optimizer_kwargs; and `optim` of transformers'
 * TrainingArguments. */
#include "learner/train/settings.h"

#include "learner/train/optimizer_id.h"

#include <stdio.h>
#include <string.h>

#define PATH "alg.policy.args.optimizer"

typedef struct optimizer_section {
    const char *id;
    const tg_node *args;
} optimizer_section;
static const tg_opt section_options[] = {
    TG_OPT_STR_REQUIRED(optimizer_section, id, "The optimizer."),
    TG_OPT_NODE(optimizer_section, args, "Arguments of the optimizer."), TG_OPT_END};

static tg_status find(const char *name, const tg_node *at, const char *path,
                      const tg_optimizer_id **out, tg_error *err) {
    *out = tg_optimizer_id_find(name);
    if (*out) return TG_OK;
    return tg_node_fail(at, path, err,
                        "no optimizer is called '%s'; expected one like AdamW (see: textgen list "
                        "optimizer)",
                        name);
}

/* Arguments of what was found; what is not built is noted where only the schema is checked. */
static tg_status read_args(tg_train_settings *s, const tg_optimizer_id *id, const tg_node *given,
                           const char *path, bool schema_only, tg_arena *arena,
                           const tg_node **resolved, tg_error *err) {
    tg_error why;
    tg_status st = tg_optimizer_args_read(id, given, path, s->policy_args.weight_decay, arena,
                                          &s->optim, resolved, &why);
    if (st == TG_UNSUPPORTED)
        return tgi_not_built(s, schema_only, given, path, err, "amsgrad of %s", id->name);
    if (st != TG_OK && err) *err = why;
    return st;
}

/* {id, args}: the resolved form takes its place. */
static tg_status read_section(tg_train_settings *s, bool schema_only, tg_arena *arena,
                              tg_error *err) {
    const tg_node *node = s->policy_args.optimizer;
    optimizer_section section;
    const tg_optimizer_id *id;
    tg_status st = tg_opts_read(section_options, &section, node, PATH, arena, err);
    if (st == TG_OK) st = find(section.id, tg_node_get(node, "id"), PATH ".id", &id, err);
    if (st == TG_OK)
        st = read_args(s, id, section.args, PATH ".args", schema_only, arena, &section.args, err);
    if (st != TG_OK) return st;
    return tgi_resolved_node(section_options, &section, PATH, arena, &s->policy_args.optimizer,
                             err);
}

tg_status tgi_optimizer_read(tg_train_settings *s, const tg_node *policy_args, bool schema_only,
                             tg_arena *arena, tg_error *err) {
    tg_policy_args *args = &s->policy_args;
    if (!tg_node_is_null(args->optimizer)) {
        const tg_node *given = args->optimizer_kwargs;
        if (!tg_node_is_null(given) && given->n_items)
            return tg_node_fail(given, "alg.policy.args.optimizer_kwargs", err,
                                "given together with optimizer: leave one of them out");
        return read_section(s, schema_only, arena, err);
    }
    const tg_node *at = tg_node_get(policy_args, "optimizer_class");
    const tg_optimizer_id *id;
    tg_status st = find(args->optimizer_class ? args->optimizer_class : "AdamW",
                        at ? at : policy_args, "alg.policy.args.optimizer_class", &id, err);
    return st == TG_OK
               ? read_args(s, id, args->optimizer_kwargs, "alg.policy.args.optimizer_kwargs",
                           schema_only, arena, &args->optimizer_kwargs, err)
               : st;
}

/* A share of 1 would keep a mean at its first 0, and its correction would divide by 0. */
static tg_status check_betas(const tg_node *training_args, double beta1, double beta2,
                             tg_error *err) {
    if (beta1 < 1 && beta2 < 1) return TG_OK;
    const char *key = beta1 < 1 ? "adam_beta2" : "adam_beta1";
    char path[64];
    snprintf(path, sizeof path, "alg.training_args.%s", key);
    return tg_node_fail(tg_node_get(training_args, key), path, err,
                        "expected a number from 0 to less than 1, found 1");
}

tg_status tgi_trainer_optimizer(tg_train_settings *s, const tg_node *training_args,
                                bool schema_only, tg_error *err) {
    static const struct {
        const char *name, *kind; /* kind NULL: not built */
    } names[] = {{"adamw_hf", "adamw"},
                 {"adamw_torch", "adamw"},
                 {"adamw_torch_fused", "adamw"},
                 {"adamw_torch_xla", "adamw"},
                 {"adamw_apex_fused", "adamw"},
                 {"adamw_8bit", "adamw_8bit"},
                 {"adamw_bnb_8bit", "adamw_8bit"},
                 {"paged_adamw_8bit", "adamw_8bit"},
                 {"sgd", "sgd"},
                 {"rmsprop", "rmsprop"},
                 {"adafactor", NULL},
                 {"adagrad", NULL}};
    const tg_training_args *a = &s->sup.args;
    const tg_node *at = tg_node_get(training_args, "optim");
    s->optim = (tg_optim_opts){.beta1 = a->adam_beta1,
                               .beta2 = a->adam_beta2,
                               .eps = a->adam_epsilon,
                               .weight_decay = a->weight_decay,
                               .decay = TG_DECAY_TRAINER,
                               .alpha = 0.99};
    const char *wanted = a->optim ? a->optim : "adamw_torch";
    tg_status st = check_betas(training_args, a->adam_beta1, a->adam_beta2, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, wanted) != 0) continue;
        s->optim.kind = names[i].kind ? names[i].kind : "adamw";
        return names[i].kind ? TG_OK
                             : tgi_not_built(s, schema_only, at, "alg.training_args.optim", err,
                                             "optimizer %s", wanted);
    }
    return tg_node_fail(at, "alg.training_args.optim", err,
                        "no optimizer is called '%s'; expected adamw_torch, adamw_8bit, sgd or "
                        "rmsprop",
                        wanted);
}
