/* What the learner reads from a config: `alg` and `train_evaluation`, every default made explicit.
 *
 *     tg_train_settings s;
 *     tg_train_settings_read(&s, root, false, &arena, err);     // true: only the schema is checked
 *     tg_train_settings_json(&s, &buf);                         // {"alg": …, "train_evaluation": …}
 *
 * All strings and nodes live in the arena. What is known but not built is TG_UNSUPPORTED by name,
 * except when only the schema is checked: then it is noted in `missing`. */
#ifndef TG_TRAIN_SETTINGS_H
#define TG_TRAIN_SETTINGS_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/status.h"
#include "common/config/tree.h"
#include "learner/optim/optim.h"
#include "learner/policy/actor_critic.h"
#include "learner/policy/gen_settings.h"
#include "learner/rl/algo.h"
#include "learner/train/policy_id.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_kl_settings {
    double coeff, target_kl; /* target NaN: the coefficient is fixed */
    bool norm_reward;
} tg_kl_settings;

/* training_args of a supervised run: the keys of transformers' TrainingArguments that have a
 * meaning here. */
typedef struct tg_training_args {
    int64_t per_device_train_batch_size, gradient_accumulation_steps;
    double num_train_epochs;
    int64_t max_steps; /* -1: num_train_epochs decides */
    double learning_rate, weight_decay, adam_beta1, adam_beta2, adam_epsilon, max_grad_norm;
    const char *optim, *lr_scheduler_type;
    int64_t warmup_steps;
    double warmup_ratio;
    int64_t logging_steps, save_steps;
    int64_t save_total_limit; /* INT64_MIN: all are kept */
    bool dataloader_drop_last, logging_first_step, gradient_checkpointing, bf16;
    const tg_node *ignored; /* storage of keys without effect */
} tg_training_args;

/* alg.model_config of a supervised run that starts from nothing. */
typedef struct tg_model_config {
    const char *model_type;
    int64_t n_layer, n_head, n_embd, n_positions, n_inner, vocab_size; /* INT64_MIN: derived */
    double layer_norm_epsilon;
} tg_model_config;

typedef struct tg_supervised {
    const char *id, *model_type, *model_name; /* model_name NULL: a fresh model */
    const tg_node *model_config, *generation_kwargs, *training_args;
    int64_t num_layers_unfrozen; /* -1: all */
    tg_model_config fresh;
    tg_training_args args;
} tg_supervised;

typedef struct tg_train_evaluation {
    int64_t eval_batch_size, n_iters, eval_every, save_every;
    const tg_node *generation_kwargs;
    double max_failed_rewards;
    const char *on_reward_failure;
    int64_t compare_sample, min_valid;
    int64_t n_samples_shown;
} tg_train_evaluation;

/* The metric that the learner itself computes (perplexity.h). */
typedef struct tg_perplexity_settings {
    bool wanted;
    const char *tokenizer_id, *model_type, *model_name;
    int64_t stride, max_tokens; /* max_tokens INT64_MIN: all */
    bool use_text_from_meta_data;
} tg_perplexity_settings;

typedef struct tg_train_settings {
    bool supervised;
    tg_train_evaluation eval;
    tg_perplexity_settings perplexity;
    tg_gen_settings rollout_gen; /* eos and pad are set by the run */
    tg_gen_settings eval_gen;
    tg_optim_opts optim;
    /* flags of the trained models: TG_MODEL_TRAINABLE or TG_MODEL_TRAIN_LAST, TG_MODEL_ROUNDED */
    unsigned train;
    bool recompute; /* activations are made again in backward */
    /* on-policy */
    const tg_algo_ops *algo;
    void *algo_opts;
    tg_kl_settings kl;
    const tg_policy_id *policy;
    tg_policy_args policy_args;
    tg_critic critic;
    tg_mask_opts mask;   /* of a maskable policy */
    bool keep_reference; /* in memory between rollouts */
    bool half_reference; /* as bf16, always in memory */
    /* supervised */
    tg_supervised sup;
    /* schema only: where the first thing is that this version does not build, "" if none */
    char missing[320];
} tg_train_settings;

extern const tg_opt tg_kl_options[];         /* of a tg_kl_settings */
extern const tg_opt tg_supervised_options[]; /* of a tg_supervised */

tg_status tg_train_settings_read(tg_train_settings *s, const tg_node *root, bool schema_only,
                                 tg_arena *arena, tg_error *err) TG_MUST_CHECK;
void tg_train_settings_json(const tg_train_settings *s, tg_buf *out);
/* A line for each option of the config that is accepted without effect. */
void tg_train_settings_unused(const tg_train_settings *s, const tg_node *root, tg_buf *out);
void tg_train_settings_alg_json(const tg_train_settings *s,
                                tg_buf *out); /* what stands under "alg" */

/* Inside the folder: the supervised form of `alg` (settings_supervised.c). */
tg_status tgi_supervised_read(tg_train_settings *s, const tg_node *alg, bool schema_only,
                              tg_arena *arena, tg_error *err) TG_MUST_CHECK;
void tgi_generation_unused(const tg_node *root, tg_buf *out);
void tgi_supervised_unused(const tg_node *root, tg_buf *out);
void tgi_supervised_json(const tg_supervised *sup, tg_buf *out);
/* A struct written by its table, read back as a node: how a nested section gets its defaults. */
tg_status tgi_resolved_node(const tg_opt *table, const void *opts, const char *path,
                            tg_arena *arena, const tg_node **out, tg_error *err) TG_MUST_CHECK;
/* Reads generation_kwargs and puts the resolved form in *node (settings_generation.c). */
tg_status tgi_generation_read(tg_train_settings *s, tg_gen_settings *gen, const tg_node **node,
                              const char *path, bool schema_only, tg_arena *arena,
                              tg_error *err) TG_MUST_CHECK;
/* The optimizer (settings_optimizer.c): into s->optim, the resolved form into the policy's arguments; and that of a supervised run. */
tg_status tgi_optimizer_read(tg_train_settings *s, const tg_node *policy_args, bool schema_only,
                             tg_arena *arena, tg_error *err) TG_MUST_CHECK;
tg_status tgi_trainer_optimizer(tg_train_settings *s, const tg_node *training_args,
                                bool schema_only, tg_error *err) TG_MUST_CHECK;
/* Flags of a model of which that many layers are trained (-1: all), with products in bf16 or not. */
static inline unsigned tgi_train_flags(int64_t num_layers_unfrozen, bool bf16) {
    return (bf16 ? TG_MODEL_ROUNDED : 0u) |
           (num_layers_unfrozen < 0 ? (unsigned)TG_MODEL_TRAINABLE
                                    : TG_MODEL_TRAIN_LAST(num_layers_unfrozen));
}
/* Remembers or refuses what is known but not built. */
tg_status tgi_not_built(tg_train_settings *s, bool schema_only, const tg_node *at, const char *path,
                        tg_error *err, const char *fmt, ...) TG_PRINTF(6, 7) TG_MUST_CHECK;
/* The same of a failure, which is no other than it was where something else is wrong. */
tg_status tgi_note_missing(tg_train_settings *s, bool schema_only, const tg_error *what,
                           tg_error *err) TG_MUST_CHECK;

#endif
