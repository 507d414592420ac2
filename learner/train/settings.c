/* `alg` and `train_evaluation` of an on-policy run. Invariant: after tg_train_settings_read every nested
 * section in the struct is its resolved form, so that tg_train_settings_json writes a config that reads
 * back to the same settings. */
#include "learner/train/settings.h"

#include "common/config/unused.h"
#include "common/base/str.h"
#include "learner/train/perplexity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The outer keys of `alg`; their contents have tables of their own. */
typedef struct alg_section {
    const char *id;
    const tg_node *args, *kl_div, *policy;
} alg_section;
static const tg_opt alg_options[] = {
    TG_OPT_STR_REQUIRED(alg_section, id, "The algorithm."),
    TG_OPT_NODE(alg_section, args, "Arguments of the algorithm."),
    TG_OPT_NODE(alg_section, kl_div, "The penalty for leaving the reference model."),
    TG_OPT_NODE(alg_section, policy, "The networks that are trained."), TG_OPT_END};

typedef struct policy_section {
    const char *id;
    const tg_node *args;
} policy_section;
static const tg_opt policy_options[] = {
    TG_OPT_STR_REQUIRED(policy_section, id, "The policy."),
    TG_OPT_NODE(policy_section, args, "Arguments of the policy."), TG_OPT_END};

const tg_opt tg_kl_options[] = {
    TG_OPT_FLOAT_REQUIRED(tg_kl_settings, coeff, 0, 1e6,
                          "Weight of the per-token KL in the reward."),
    TG_OPT_FLOAT_OR_NULL(tg_kl_settings, target_kl, 1e-9, 1e6,
                         "The coefficient follows this mean KL; null keeps it."),
    TG_OPT_BOOL(tg_kl_settings, norm_reward, "false", "Standardise rewards over the buffer."),
    TG_OPT_END};

#define E tg_train_evaluation
#define EVAL_COMMON                                                                                \
    TG_OPT_NODE(E, generation_kwargs, "How evaluation chooses tokens; null: as in rollouts."),     \
        TG_OPT_INT(E, n_samples_shown, "3", 0, 1000, "Samples shown before and after training.")
static const tg_opt eval_options[] = {
    TG_OPT_INT_REQUIRED(E, eval_batch_size, 1, 1e6, "Sequences generated together in evaluation."),
    TG_OPT_INT_REQUIRED(E, n_iters, 1, 1e9, "Iterations: one rollout and one update each."),
    TG_OPT_INT_REQUIRED(E, eval_every, 1, 1e9, "Iterations between evaluations on val."),
    TG_OPT_INT(E, save_every, "20", 1, 1e9, "Iterations between checkpoints."),
    EVAL_COMMON,
    TG_OPT_FLOAT(E, max_failed_rewards, "0.1", 0, 1,
                 "Share of an iteration's rewards that may fail before the run stops."),
    TG_OPT_STR_ONE_OF(E, on_reward_failure, "drop", "drop|abort",
                      "An episode without a reward is left out, or ends the run."),
    TG_OPT_INT(E, compare_sample, "1", 1, 4096,
               "Samples of each prompt in a rollout, for rewards that compare them."),
    TG_OPT_INT(E, min_valid, "2", 1, 4096,
               "Samples that must have a reward for their group to count."),
    TG_OPT_END};
static const tg_opt supervised_eval_options[] = {
    TG_OPT_INT_REQUIRED(E, eval_batch_size, 1, 1e6, "Sequences generated together in evaluation."),
    EVAL_COMMON, TG_OPT_END};
#undef E

tg_status tgi_resolved_node(const tg_opt *table, const void *opts, const char *path,
                            tg_arena *arena, const tg_node **out, tg_error *err) {
    tg_buf text = {0};
    tg_opts_json(table, opts, &text);
    tg_node *node = NULL;
    tg_status st = text.failed ? tg_fail_nomem(err, text.len)
                               : tg_tree_parse(arena, path, text.data, text.len, &node, err);
    tg_buf_fini(&text);
    *out = node;
    return st;
}

tg_status tgi_not_built(tg_train_settings *s, bool schema_only, const tg_node *at, const char *path,
                        tg_error *err, const char *fmt, ...) {
    char what[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    tg_error built;
    tg_node_fail(at, path, &built, "%s is known, but not built into this version", what);
    built.status = TG_UNSUPPORTED;
    return tgi_note_missing(s, schema_only, &built, err);
}

tg_status tgi_note_missing(tg_train_settings *s, bool schema_only, const tg_error *what,
                           tg_error *err) {
    if (!schema_only || what->status != TG_UNSUPPORTED) {
        if (err) *err = *what;
        return what->status;
    }
    const int most = (int)sizeof s->missing - 1;
    if (!s->missing[0]) snprintf(s->missing, sizeof s->missing, "%.*s", most, what->msg);
    return TG_OK;
}

/* RL4LMs's names: a share of probability where top_mask is one, else a number of tokens. */
static tg_status read_mask(tg_train_settings *s, const tg_node *at, tg_error *err) {
    const tg_policy_args *a = &s->policy_args;
    tg_mask_opts *m = &s->mask;
    *m = (tg_mask_opts){.kind = !strcmp(a->mask_type, "learned_top_p")   ? TG_MASK_LEARNED_TOP_P
                                : !strcmp(a->mask_type, "learned_top_k") ? TG_MASK_LEARNED_TOP_K
                                                                         : TG_MASK_TOP_K,
                        .top = -1,
                        .min_keep = a->min_tokens_to_keep,
                        .every = a->target_update_iterations};
    if (!tg_node_is_null(a->top_mask) &&
        (a->top_mask->kind != TG_NODE_SCALAR || !tg_parse_f64(a->top_mask->text, &m->top)))
        return tg_node_fail(at, "alg.policy.args.top_mask", err, "expected a number");
    bool share = m->kind == TG_MASK_LEARNED_TOP_P;
    if (share && m->top == -1) m->top = 1;
    if (share ? !(m->top > 0 && m->top <= 1) : !(m->top == -1 || m->top >= 1))
        return tg_node_fail(at, "alg.policy.args.top_mask", err,
                            share ? "%g is no share of probability: learned_top_p takes 0 to 1"
                                  : "%g is no number of tokens: give 1 or more, or -1 for all",
                            m->top);
    if (s->policy->kind == TG_KIND_SEQ2SEQ) m->min_keep++; /* as RL4LMs counts there */
    return TG_OK;
}

static tg_status read_policy(tg_train_settings *s, const tg_node *node, const tg_node *alg,
                             bool schema_only, tg_arena *arena, tg_error *err) {
    if (tg_node_is_null(node))
        return tg_node_fail(alg, "alg.policy", err, "missing: which networks to train (id, args)");
    policy_section section;
    tg_status st = tg_opts_read(policy_options, &section, node, "alg.policy", arena, err);
    if (st == TG_OK)
        st = tg_policy_id_find(tg_node_get(node, "id"), "alg.policy.id", &s->policy, err);
    if (st == TG_OK && s->algo->masked && !s->policy->maskable)
        st = tg_node_fail(tg_node_get(node, "id"), "alg.policy.id", err,
                          "%s masks actions: use maskable_causal_lm_actor_critic_policy or "
                          "maskable_seq2seq_lm_actor_critic_policy",
                          s->algo->name);
    tg_policy_args *args = &s->policy_args;
    if (st == TG_OK)
        st = tg_opts_read(s->policy->options, args, section.args, "alg.policy.args", arena, err);
    if (st == TG_OK)
        st = tgi_generation_read(s, &s->rollout_gen, &args->generation_kwargs,
                                 "alg.policy.args.generation_kwargs", schema_only, arena, err);
    if (st == TG_OK) st = tgi_optimizer_read(s, section.args, schema_only, arena, err);
    if (st != TG_OK) return st;
    s->critic = !strcmp(args->critic, "shared") ? TG_CRITIC_SHARED : TG_CRITIC_SEPARATE;
    s->train = tgi_train_flags(args->num_layers_unfrozen, !strcmp(args->compute_dtype, "bf16"));
    s->recompute = args->recompute;
    s->keep_reference = !strcmp(args->reference, "memory");
    s->half_reference = !strcmp(args->reference_dtype, "bf16");
    s->rollout_gen.weights =
        !strcmp(args->decode_dtype, "bf16") ? TG_WEIGHT_PACKED_BF16 : TG_WEIGHT_PACKED;
    s->rollout_gen.half_cache = !strcmp(args->kv_dtype, "bf16");
    if (s->policy->maskable) {
        st = read_mask(s, node, err);
        if (st != TG_OK) return st;
    }
    if (s->algo->critic_only && (s->critic == TG_CRITIC_SHARED || s->recompute))
        return tg_node_fail(node, "alg.policy.args", err,
                            "%s needs `critic: separate` and `recompute: false`", s->algo->name);
    return TG_OK;
}

static tg_status find_algorithm(tg_train_settings *s, const tg_node *id, tg_error *err) {
    tg_error why;
    tg_status st = tg_algo_find(id->text, &s->algo, &why);
    return st == TG_OK ? TG_OK : tg_node_fail(id, "alg.id", err, "%s", why.msg);
}

static tg_status read_on_policy(tg_train_settings *s, const tg_node *alg, bool schema_only,
                                tg_arena *arena, tg_error *err) {
    alg_section section;
    tg_status st = tg_opts_read(alg_options, &section, alg, "alg", arena, err);
    if (st == TG_OK) st = find_algorithm(s, tg_node_get(alg, "id"), err);
    if (st != TG_OK) return st;
    s->algo_opts = tg_arena_alloc(arena, s->algo->options_size + 1);
    if (!s->algo_opts) return tg_fail_nomem(err, s->algo->options_size);
    st = tg_opts_read(s->algo->options, s->algo_opts, section.args, "alg.args", arena, err);
    if (st == TG_OK && tg_node_is_null(section.kl_div))
        st = tg_node_fail(alg, "alg.kl_div", err, "missing: expected at least {coeff: 0.1}");
    if (st == TG_OK)
        st = tg_opts_read(tg_kl_options, &s->kl, section.kl_div, "alg.kl_div", arena, err);
    if (st == TG_OK) st = read_policy(s, section.policy, alg, schema_only, arena, err);
    if (st == TG_OK && s->algo->optimizer) s->algo->optimizer(s->algo_opts, &s->optim);
    return st;
}

/* The section without the keys that belong to the environment. */
static tg_status without_metrics(const tg_node *section, tg_arena *arena, const tg_node **out,
                                 tg_error *err) {
    *out = section;
    if (!section || section->kind != TG_NODE_MAP) return TG_OK;
    tg_node *copy = tg_arena_alloc(arena, sizeof *copy);
    tg_node **items = tg_arena_array(arena, section->n_items + 1, sizeof *items);
    if (!copy || !items) return tg_fail_nomem(err, sizeof *copy);
    *copy = *section;
    copy->items = items;
    copy->n_items = 0;
    for (size_t i = 0; i < section->n_items; i++)
        if (strcmp(section->items[i]->key, "metrics") != 0)
            items[copy->n_items++] = section->items[i];
    *out = copy;
    return TG_OK;
}

static const tg_opt *eval_table(const tg_train_settings *s) {
    return s->supervised ? supervised_eval_options : eval_options;
}

tg_status tg_train_settings_read(tg_train_settings *s, const tg_node *root, bool schema_only,
                                 tg_arena *arena, tg_error *err) {
    memset(s, 0, sizeof *s);
    const tg_node *alg = tg_node_get(root, "alg");
    const tg_node *id = tg_node_get(alg, "id");
    if (!id || id->kind != TG_NODE_SCALAR)
        return tg_node_fail(alg ? alg : root, "alg.id", err,
                            "missing: expected an algorithm such as ppo");
    s->supervised = strstr(id->text, "supervised") != NULL; /* as RL4LMs decides it */
    tg_status st = s->supervised ? tgi_supervised_read(s, alg, schema_only, arena, err)
                                 : read_on_policy(s, alg, schema_only, arena, err);
    const tg_node *section = NULL;
    if (st == TG_OK && tg_node_is_null(tg_node_get(root, "train_evaluation")))
        st = tg_node_fail(root, "train_evaluation", err, "missing section");
    if (st == TG_OK)
        st = without_metrics(tg_node_get(root, "train_evaluation"), arena, &section, err);
    if (st == TG_OK)
        st = tg_perplexity_read(&s->perplexity,
                                tg_node_get(tg_node_get(root, "train_evaluation"), "metrics"),
                                arena, err);
    if (st == TG_OK)
        st = tg_opts_read(eval_table(s), &s->eval, section, "train_evaluation", arena, err);
    if (st != TG_OK) return st;
    if (tg_node_is_null(s->eval.generation_kwargs)) {
        s->eval.generation_kwargs =
            s->supervised ? s->sup.generation_kwargs : s->policy_args.generation_kwargs;
        s->eval_gen = s->rollout_gen;
    } else {
        st = tgi_generation_read(s, &s->eval_gen, &s->eval.generation_kwargs,
                                 "train_evaluation.generation_kwargs", schema_only, arena, err);
    }
    s->eval_gen.weights = TG_WEIGHT_PACKED; /* whatever rollouts use: the model itself is judged */
    s->eval_gen.half_cache = false;
    return st;
}

void tg_train_settings_unused(const tg_train_settings *s, const tg_node *root, tg_buf *out) {
    if (s->supervised) {
        tgi_supervised_unused(root, out);
        return;
    }
    tg_opts_unused(s->algo ? s->algo->options : NULL, tg_node_at(root, "alg.args"), "alg.args",
                   out);
    tg_opts_unused(s->policy ? s->policy->options : NULL, tg_node_at(root, "alg.policy.args"),
                   "alg.policy.args", out);
    tgi_generation_unused(root, out);
}

void tg_train_settings_alg_json(const tg_train_settings *s, tg_buf *out) {
    if (s->supervised) {
        tgi_supervised_json(&s->sup, out);
        return;
    }
    tg_buf_puts(out, "{\"id\": ");
    tg_json_string(out, s->algo->name, strlen(s->algo->name));
    tg_buf_puts(out, ", \"args\": ");
    tg_opts_json(s->algo->options, s->algo_opts, out);
    tg_buf_puts(out, ", \"kl_div\": ");
    tg_opts_json(tg_kl_options, &s->kl, out);
    tg_buf_puts(out, ", \"policy\": {\"id\": ");
    tg_json_string(out, s->policy->name, strlen(s->policy->name));
    tg_buf_puts(out, ", \"args\": ");
    tg_opts_json(s->policy->options, &s->policy_args, out);
    tg_buf_puts(out, "}}");
}

void tg_train_settings_json(const tg_train_settings *s, tg_buf *out) {
    tg_buf_puts(out, "{\"alg\": ");
    tg_train_settings_alg_json(s, out);
    tg_buf_puts(out, ", \"train_evaluation\": ");
    tg_opts_json(eval_table(s), &s->eval, out);
    tg_buf_puts(out, "}");
}
