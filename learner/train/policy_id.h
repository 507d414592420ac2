/* The policies a config may name (alg.policy.id) and the arguments of each.
 *
 * A policy id says which kind of model is trained (causal or encoder-decoder) and whether an action
 * mask restricts it. */
#ifndef TG_TRAIN_POLICY_ID_H
#define TG_TRAIN_POLICY_ID_H

#include "common/base/status.h"
#include "common/config/option.h"
#include "common/nn/arch.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_policy_args {
    const char *model_name;
    bool apply_model_parallel;
    const char *prompt_truncation_side;
    const tg_node *generation_kwargs, *optimizer_kwargs;
    double weight_decay;
    const char *optimizer_class;
    const tg_node *optimizer; /* {id, args}: in place of optimizer_class and optimizer_kwargs */
    const tg_node *state_dict;
    const char *critic;
    int64_t num_layers_unfrozen; /* -1: all */
    bool recompute;
    const char *reference; /* "folder" or "memory" */
    const char *compute_dtype, *reference_dtype, *decode_dtype, *kv_dtype;
    /* maskable policies */
    const tg_node *top_mask;
    const char *mask_type;
    int64_t target_update_iterations, min_tokens_to_keep;
} tg_policy_args;

typedef struct tg_policy_id {
    const char *name, *summary;
    const tg_opt *options; /* of a tg_policy_args */
    bool maskable;
    tg_kind kind; /* of the models it takes */
} tg_policy_id;

const tg_policy_id *const *tg_policy_id_list(void); /* NULL-terminated */
/* TG_CONFIG at `node` naming the nearest ids. */
tg_status tg_policy_id_find(const tg_node *node, const char *path, const tg_policy_id **out,
                            tg_error *err) TG_MUST_CHECK;

#endif
