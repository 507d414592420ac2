/* `alg` of a supervised run: a model, how it generates in evaluation, and transformers'
 * TrainingArguments. */
#include "learner/train/settings.h"

#include "common/config/unused.h"
#include "common/base/check.h"

#include <math.h>
#include <string.h>

#define S tg_supervised
const tg_opt tg_supervised_options[] = {
    TG_OPT_STR_REQUIRED(S, id, "supervised"),
    TG_OPT_STR_ONE_OF(S, model_type, "causal", "causal|seq2seq", "Kind of language model."),
    TG_OPT_STR(
        S, model_name, NULL,
        "Folder or name of the pretrained model; null with model_config starts a fresh one."),
    TG_OPT_NODE(S, model_config, "Sizes of a fresh model."),
    TG_OPT_NODE(S, generation_kwargs, "How evaluation chooses tokens."),
    TG_OPT_NODE(S, training_args, "transformers' TrainingArguments."),
    TG_OPT_INT(
        S, num_layers_unfrozen, "-1", -1, 1024,
        "Train only so many of the last layers, at most all, the norm behind them and an output "
        "matrix of its own; 0: that norm alone. -1: all."),
    TG_OPT_END};
#undef S

#define M tg_model_config
static const tg_opt model_options[] = {
    TG_OPT_STR_ONE_OF(M, model_type, "gpt2", "gpt2", "Model family."),
    TG_OPT_INT_REQUIRED(M, n_layer, 1, 1000, "Blocks."),
    TG_OPT_INT_REQUIRED(M, n_head, 1, 1000, "Attention heads."),
    TG_OPT_INT_REQUIRED(M, n_embd, 1, 100000, "Width; a multiple of n_head."),
    TG_OPT_INT(M, n_positions, "1024", 1, 1e6, "Longest sequence."),
    TG_OPT_INT_OR_NULL(M, n_inner, 1, 1e6, "Width inside the MLP; null: four times n_embd."),
    TG_OPT_INT_OR_NULL(M, vocab_size, 1, 1e7, "null: as many as the tokenizer has."),
    TG_OPT_FLOAT(M, layer_norm_epsilon, "1e-5", 0, 1, "Added to the variance."),
    TG_OPT_END};
#undef M

#define A tg_training_args
#define UNUSED(k, h)                                                                               \
    { k, TG_T_NODE, TG_OPT_NULLABLE | TG_OPT_IGNORED, offsetof(A, ignored), NULL, 0, 0, NULL, h }
static const tg_opt args_options[] = {
    TG_OPT_INT(A, per_device_train_batch_size, "8", 1, 1e6, "Texts in a batch."),
    TG_OPT_INT(A, gradient_accumulation_steps, "1", 1, 1e6, "Batches summed before a step."),
    TG_OPT_FLOAT(A, num_train_epochs, "3.0", 0, 1e6, "Passes over the data."),
    TG_OPT_INT(A, max_steps, "-1", -1, 1e12, "Optimizer steps; overrides num_train_epochs."),
    TG_OPT_FLOAT(A, learning_rate, "5e-5", 0, 1e3, "Peak learning rate."),
    TG_OPT_FLOAT(A, weight_decay, "0.0", 0, 1e3, "Decay of every matrix; not of biases and norms."),
    TG_OPT_STR(A, optim, "adamw_torch", "adamw_torch, adamw_8bit, sgd or rmsprop."),
    TG_OPT_FLOAT(A, adam_beta1, "0.9", 0, 1, "AdamW."),
    TG_OPT_FLOAT(A, adam_beta2, "0.999", 0, 1, "AdamW."),
    TG_OPT_FLOAT(A, adam_epsilon, "1e-8", TG_OPTIM_EPS_MIN, 1, "AdamW."),
    TG_OPT_FLOAT(A, max_grad_norm, "1.0", 0, 1e9, "Gradients are clipped to this norm; 0 is off."),
    TG_OPT_STR_ONE_OF(A, lr_scheduler_type, "linear", "linear|cosine|constant|constant_with_warmup",
                      "How the learning rate moves."),
    TG_OPT_INT(A, warmup_steps, "0", 0, 1e9, "Steps to reach the peak; overrides warmup_ratio."),
    TG_OPT_FLOAT(A, warmup_ratio, "0.0", 0, 1, "Share of all steps to reach the peak."),
    TG_OPT_INT(A, logging_steps, "500", 1, 1e9, "Steps between log lines and evaluations on val."),
    TG_OPT_BOOL(A, logging_first_step, "false", "Also log the first step."),
    TG_OPT_INT(A, save_steps, "500", 1, 1e9, "Steps between checkpoints."),
    TG_OPT_INT_OR_NULL(A, save_total_limit, 1, 1e6, "Checkpoints to keep; null keeps all."),
    TG_OPT_BOOL(A, gradient_checkpointing, "false",
                "Make activations again in backward: less memory, about a quarter more time."),
    TG_OPT_BOOL(A, bf16, "false",
                "What matrix products multiply is rounded to bf16; sums and all else stay f32."),
    TG_OPT_BOOL(A, dataloader_drop_last, "false", "Leave out the last, smaller batch."),
    UNUSED("output_dir", "The run folder decides."),
    UNUSED("overwrite_output_dir", "The run folder decides."),
    UNUSED("seed", "The top-level seed decides."),
    UNUSED("data_seed", "The top-level seed decides."),
    UNUSED("do_train", "Always."),
    UNUSED("do_eval", "Always."),
    UNUSED("do_predict", "Evaluation always generates."),
    UNUSED("evaluation_strategy", "Evaluation follows logging_steps."),
    UNUSED("eval_steps", "Evaluation follows logging_steps."),
    UNUSED("eval_delay", "Evaluation follows logging_steps."),
    UNUSED("per_device_eval_batch_size", "train_evaluation.eval_batch_size decides."),
    UNUSED("eval_accumulation_steps", "Nothing is accumulated on a device."),
    UNUSED("prediction_loss_only", "Evaluation generates."),
    UNUSED("logging_dir", "The run folder decides."),
    UNUSED("logging_strategy", "By steps."),
    UNUSED("logging_nan_inf_filter", "A non-finite step is skipped and reported."),
    UNUSED("save_strategy", "By steps."),
    UNUSED("log_level", "TEXTGEN_LOG decides."),
    UNUSED("fp16", "Training is in f32, or with bf16: true in that."),
    UNUSED("tf32", "Training is in f32."),
    UNUSED("no_cuda", "The backend decides."),
    UNUSED("local_rank", "One learner process."),
    UNUSED("group_by_length", "Batches are packed without padding."),
    UNUSED("dataloader_num_workers", "The worker pool reads the data."),
    UNUSED("dataloader_pin_memory", "No effect on the CPU."),
    UNUSED("remove_unused_columns", "There are none."),
    UNUSED("report_to", "Trackers decide."),
    UNUSED("run_name", "The run folder decides."),
    UNUSED("disable_tqdm", "The progress line knows a terminal."),
    UNUSED("load_best_model_at_end", "The last model is saved."),
    UNUSED("metric_for_best_model", "The last model is saved."),
    UNUSED("greater_is_better", "The last model is saved."),
    UNUSED("resume_from_checkpoint", "--resume decides."),
    UNUSED("push_to_hub", "Nothing is uploaded."),
    TG_OPT_END};
#undef UNUSED
#undef A

/* The rows with an effect: what the resolved config shows. */
static size_t args_shown(tg_opt *shown) {
    size_t n = 0;
    for (const tg_opt *o = args_options; o->key; o++)
        if (!(o->flags & TG_OPT_IGNORED)) shown[n++] = *o;
    shown[n] = (tg_opt)TG_OPT_END;
    return n;
}

static tg_status read_model(tg_train_settings *s, const tg_node *alg, tg_arena *arena,
                            tg_error *err) {
    tg_supervised *sup = &s->sup;
    bool fresh = !tg_node_is_null(sup->model_config);
    if (!fresh && !sup->model_name)
        return tg_node_fail(alg, "alg.model_name", err,
                            "missing: expected a model, or model_config for a fresh one");
    if (!fresh) return TG_OK;
    if (strcmp(sup->model_type, "causal") != 0)
        return tg_node_fail(sup->model_config, "alg.model_config", err,
                            "makes a causal model, and alg.model_type is %s: give model_name",
                            sup->model_type);
    if (sup->model_name)
        return tg_node_fail(sup->model_config, "alg.model_config", err,
                            "given together with model_name (%s): leave one of them out",
                            sup->model_name);
    tg_status st =
        tg_opts_read(model_options, &sup->fresh, sup->model_config, "alg.model_config", arena, err);
    if (st != TG_OK) return st;
    if (sup->fresh.n_embd % sup->fresh.n_head != 0)
        return tg_node_fail(sup->model_config, "alg.model_config.n_embd", err,
                            "expected a multiple of n_head (%lld), found %lld",
                            (long long)sup->fresh.n_head, (long long)sup->fresh.n_embd);
    if (sup->fresh.n_inner == INT64_MIN) sup->fresh.n_inner = 4 * sup->fresh.n_embd;
    return tgi_resolved_node(model_options, &sup->fresh, "alg.model_config", arena,
                             &sup->model_config, err);
}

tg_status tgi_supervised_read(tg_train_settings *s, const tg_node *alg, bool schema_only,
                              tg_arena *arena, tg_error *err) {
    tg_supervised *sup = &s->sup;
    tg_status st = tg_opts_read(tg_supervised_options, sup, alg, "alg", arena, err);
    if (st == TG_OK && strcmp(sup->id, "supervised") != 0)
        st = tg_node_fail(tg_node_get(alg, "id"), "alg.id", err,
                          "no algorithm is called '%s'; did you mean supervised", sup->id);
    if (st == TG_OK) st = read_model(s, alg, arena, err);
    if (st == TG_OK)
        st = tgi_generation_read(s, &s->rollout_gen, &sup->generation_kwargs,
                                 "alg.generation_kwargs", schema_only, arena, err);
    if (st == TG_OK)
        st = tg_opts_read(args_options, &sup->args, sup->training_args, "alg.training_args", arena,
                          err);
    if (st == TG_OK) st = tgi_trainer_optimizer(s, sup->training_args, schema_only, err);
    s->train = tgi_train_flags(sup->num_layers_unfrozen, sup->args.bf16);
    s->recompute = sup->args.gradient_checkpointing;
    if (st != TG_OK) return st;
    tg_opt shown[TG_COUNT_OF(args_options)];
    args_shown(shown);
    return tgi_resolved_node(shown, &sup->args, "alg.training_args", arena, &sup->training_args,
                             err);
}

void tgi_supervised_unused(const tg_node *root, tg_buf *out) {
    tg_opts_unused(args_options, tg_node_at(root, "alg.training_args"), "alg.training_args", out);
    const tg_node *longest = tg_node_at(root, "tokenizer.max_length");
    if (tg_node_is_null(longest)) return;
    tg_error note = {0};
    tg_node_fail(
        longest, "tokenizer.max_length", &note,
        "has no effect on the texts that are trained on, as in RL4LMs: the tokenizer's own "
        "model_max_length and the model's positions cut them");
    tg_buf_printf(out, "note: %s\n", note.msg);
}

void tgi_supervised_json(const tg_supervised *sup, tg_buf *out) {
    tg_opts_json(tg_supervised_options, sup, out);
}
