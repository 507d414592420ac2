/* The table of policies. Adding one is one row here and its network in learner/policy. */
#include "learner/train/policy_id.h"

#include "common/base/check.h"
#include "common/base/str.h"

#include <string.h>

#define S tg_policy_args
#define COMMON_OPTIONS                                                                             \
    TG_OPT_STR_REQUIRED(S, model_name, "Folder or name of the pretrained language model."),        \
        TG_OPT_ROW(S, apply_model_parallel, TG_T_BOOL, TG_OPT_IGNORED, "true", 0, 0, NULL,         \
                   "No effect: all layers are on one device."),                                    \
        TG_OPT_STR_ONE_OF(S, prompt_truncation_side, "left", "left|right",                         \
                          "Which end of a long prompt is cut for evaluation."),                    \
        TG_OPT_NODE(S, generation_kwargs, "How rollouts choose tokens (names of transformers)."),  \
        TG_OPT_NODE(S, optimizer_kwargs, "Arguments of the optimizer (names of torch)."),          \
        TG_OPT_FLOAT(S, weight_decay, "1e-6", 0, 1e3,                                              \
                     "Decay of every parameter that is not a bias."),                              \
        TG_OPT_STR(S, optimizer_class, "AdamW", "The optimizer, by torch's class name."),          \
        TG_OPT_NODE(S, optimizer,                                                                  \
                    "{id: adamw | adamw_8bit | adam | rmsprop | sgd, args: ...}, in place of "     \
                    "optimizer_class and optimizer_kwargs."),                                      \
        TG_OPT_ROW(S, state_dict, TG_T_NODE, TG_OPT_NULLABLE | TG_OPT_IGNORED, NULL, 0, 0, NULL,   \
                   "Filled in by RL4LMs on a warm start; a resumed run reads its checkpoint."),    \
        TG_OPT_STR_ONE_OF(S, critic, "separate", "separate|shared",                                \
                          "The critic is a network of its own, or a head on the policy's trunk."), \
        TG_OPT_INT(S, num_layers_unfrozen, "-1", -1, 1024,                                         \
                   "Train only so many of the last layers, at most all, the norm behind them and " \
                   "heads of their own; 0: that norm and the value head. What is frozen needs no " \
                   "gradients and no optimizer state. -1: train all."),                            \
        TG_OPT_STR_ONE_OF(S, reference, "folder", "folder|memory",                                 \
                          "Between rollouts the reference's weights are in the model folder, "     \
                          "from which they are read again, or kept in memory."),                   \
        TG_OPT_STR_ONE_OF(S, compute_dtype, "f32", "f32|bf16",                                     \
                          "Matrix products of training and scoring; bf16: what they multiply is "  \
                          "rounded, sums, weights, gradients and all else stay f32; where the "    \
                          "processor multiplies bf16, nearly twice as fast."),                     \
        TG_OPT_STR_ONE_OF(S, reference_dtype, "f32", "f32|bf16",                                   \
                          "The reference's weights; bf16: half the memory, always in memory, its " \
                          "log-probs a little off."),                                              \
        TG_OPT_STR_ONE_OF(S, decode_dtype, "f32", "f32|bf16",                                      \
                          "Weights with which rollouts are generated: bf16 reads half the bytes "  \
                          "for every token, from a distribution a little off the policy's; where " \
                          "the processor multiplies bf16, twice as fast."),                        \
        TG_OPT_STR_ONE_OF(S, kv_dtype, "f32", "f32|bf16",                                          \
                          "The same for the keys and values of rollouts."),                        \
        TG_OPT_BOOL(S, recompute, "false",                                                         \
                    "Make activations again in backward: less memory, about a quarter more time.")

static const tg_opt plain_options[] = {COMMON_OPTIONS, TG_OPT_END};
static const tg_opt maskable_options[] = {
    COMMON_OPTIONS,
    TG_OPT_NODE(S, top_mask, "A share of probability (float) or a number of tokens (int) to keep."),
    TG_OPT_STR_ONE_OF(S, mask_type, "learned_top_k", "learned_top_k|learned_top_p|topk",
                      "How the mask is made."),
    TG_OPT_INT(S, target_update_iterations, "1000", 1, 1e9, "Rollouts between mask updates."),
    TG_OPT_INT(S, min_tokens_to_keep, "100", 1, 1e9, "A mask allows at least this many tokens."),
    TG_OPT_END};
#undef S

static const tg_policy_id causal = {
    "causal_lm_actor_critic_policy",
    "decoder-only language model with a value network or head and a frozen reference",
    plain_options, false, TG_KIND_CAUSAL};
static const tg_policy_id seq2seq = {
    "seq2seq_lm_actor_critic_policy",
    "encoder-decoder language model with a value network or head and a frozen reference",
    plain_options, false, TG_KIND_SEQ2SEQ};
static const tg_policy_id maskable_causal = {
    "maskable_causal_lm_actor_critic_policy",
    "decoder-only language model whose actions a learned mask restricts", maskable_options, true,
    TG_KIND_CAUSAL};
static const tg_policy_id maskable_seq2seq = {
    "maskable_seq2seq_lm_actor_critic_policy",
    "encoder-decoder language model whose actions a learned mask restricts", maskable_options, true,
    TG_KIND_SEQ2SEQ};

const tg_policy_id *const *tg_policy_id_list(void) {
    static const tg_policy_id *const all[] = {&causal, &seq2seq, &maskable_causal,
                                              &maskable_seq2seq, NULL};
    return all;
}

tg_status tg_policy_id_find(const tg_node *node, const char *path, const tg_policy_id **out,
                            tg_error *err) {
    const tg_policy_id *const *all = tg_policy_id_list();
    const char *names[16];
    size_t n = 0;
    for (; all[n]; n++) {
        TG_ASSERT(n < TG_COUNT_OF(names));
        names[n] = all[n]->name;
        if (!strcmp(node->text, names[n])) {
            *out = all[n];
            return TG_OK;
        }
    }
    const char *near = tg_nearest(node->text, names, n);
    return tg_node_fail(node, path, err,
                        "no policy is called '%s'; %s%s (see: textgen list policy)", node->text,
                        near ? "did you mean " : "expected one like ", near ? near : names[0]);
}
