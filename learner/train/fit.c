/* The keys that are blamed are those that a user would change: the tokenizer's name rather than the model's, lengths of the environment
 * rather than positions of the model. */
#include "learner/train/fit.h"

#include "common/base/check.h"
#include "common/config/option.h"
#include "common/nn/model.h"
#include "learner/train/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The policy, or model_type of a supervised run, says what the model must be. */
static tg_status check_kind(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                            const char *folder, tg_error *err) {
    static const char *const kinds[] = {"causal", "encoder-decoder", "encoder"};
    bool seq2seq = s->supervised && !strcmp(s->sup.model_type, "seq2seq");
    tg_kind wanted = s->supervised ? seq2seq ? TG_KIND_SEQ2SEQ : TG_KIND_CAUSAL : s->policy->kind;
    const char *name = s->supervised ? "alg.model_name" : "alg.policy.args.model_name";
    if (arch->kind == wanted && arch->labels)
        return tg_node_fail(tg_node_at(root, name), name, err,
                            "%s: a %s model with labels (architectures in config.json) writes no "
                            "text; train the language model it came from",
                            folder, arch->family);
    if (arch->kind == wanted) return TG_OK;
    const char *kind = s->supervised ? "alg.model_type" : "alg.policy.id";
    const tg_node *at = tg_node_at(root, kind);
    return tg_node_fail(at ? at : tg_node_at(root, name), kind, err,
                        "%s needs %s %s model, but %s is %s %s one (%s)",
                        s->supervised ? s->sup.model_type : s->policy->name,
                        wanted == TG_KIND_CAUSAL ? "a" : "an", kinds[wanted], folder,
                        arch->kind == TG_KIND_CAUSAL ? "a" : "an", kinds[arch->kind], arch->family);
}

static tg_status check_vocabulary(const tg_node *root, const tg_train_settings *s,
                                  const tg_arch *arch, const char *folder,
                                  const tg_tokenizer *tokenizer, tg_error *err) {
    if (!tokenizer || tg_tokenizer_size(tokenizer) <= arch->vocab_size) return TG_OK;
    if (!folder)
        return tg_node_fail(tg_node_at(root, "alg.model_config.vocab_size"),
                            "alg.model_config.vocab_size", err,
                            "%d is less than the %d tokens of the tokenizer: leave it out, and the "
                            "model gets as many",
                            arch->vocab_size, tg_tokenizer_size(tokenizer));
    return tg_node_fail(tg_node_at(root, "tokenizer.model_name"), "tokenizer.model_name", err,
                        "this tokenizer has %d tokens and %s of the model %s only %d: they do not "
                        "belong together; name the tokenizer of %s",
                        tg_tokenizer_size(tokenizer), "vocab_size", folder, arch->vocab_size,
                        s->supervised ? "alg.model_name" : "alg.policy.args.model_name");
}

static const char *unfrozen_key(const tg_train_settings *s) {
    return s->supervised ? "alg.num_layers_unfrozen" : "alg.policy.args.num_layers_unfrozen";
}

static int64_t unfrozen(const tg_train_settings *s) {
    return s->supervised ? s->sup.num_layers_unfrozen : s->policy_args.num_layers_unfrozen;
}

/* Parameters with a gradient, without the value head, which a rollout does not see; *total: all. */
static size_t count_trained(const tg_train_settings *s, const tg_arch *arch, size_t *total) {
    tg_params params;
    *total = 0;
    if (tg_model_params(&params, arch, s->train, NULL) != TG_OK) return 0;
    size_t trained = 0;
    for (size_t i = 0; i < params.n; i++) {
        *total += params.list[i].count;
        if (params.list[i].grad_offset != TG_PARAM_FROZEN) trained += params.list[i].count;
    }
    tg_params_fini(&params);
    return trained;
}

static tg_status check_unfrozen(const tg_node *root, const tg_train_settings *s,
                                const tg_arch *arch, tg_error *err) {
    const int64_t n = unfrozen(s);
    const char *key = unfrozen_key(s);
    if (n > arch->n_layers)
        return tg_node_fail(tg_node_at(root, key), key, err,
                            "expected at most %d, which are the model's %slayers, found %" PRId64
                            "; -1 trains all of it, embeddings too",
                            arch->n_layers, arch->kind == TG_KIND_SEQ2SEQ ? "decoder " : "", n);
    size_t total;
    if (n == 0 && !count_trained(s, arch, &total))
        return tg_node_fail(tg_node_at(root, key), key, err,
                            "0 leaves nothing to train: a %s model has no norm behind its last "
                            "layer; expected 1 to %d layers, or -1 for all",
                            arch->family, arch->n_layers);
    return TG_OK;
}

/* Token ids in the settings of generation are the model's. */
static tg_status check_tokens(const tg_node *root, const tg_gen_settings *gen, const char *path,
                              const tg_arch *arch, tg_error *err) {
    tg_status st = tg_gen_settings_fit(gen, arch->vocab_size, path, err);
    return st == TG_OK ? st : tg_node_blame(tg_node_at(root, path), NULL, st, err);
}

tg_status tg_fit_model(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                       const char *folder, const tg_tokenizer *tokenizer, tg_error *err) {
    tg_status st = folder ? check_kind(root, s, arch, folder, err) : TG_OK;
    if (st == TG_OK) st = check_vocabulary(root, s, arch, folder, tokenizer, err);
    if (st == TG_OK) st = check_unfrozen(root, s, arch, err);
    const char *rollout =
        s->supervised ? "alg.generation_kwargs" : "alg.policy.args.generation_kwargs";
    if (st == TG_OK) st = check_tokens(root, &s->rollout_gen, rollout, arch, err);
    if (st == TG_OK)
        st = check_tokens(root, &s->eval_gen, "train_evaluation.generation_kwargs", arch, err);
    return st;
}

void tg_fit_describe(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                     tg_buf *out) {
    const int64_t n = unfrozen(s);
    size_t total;
    if (n < 0) return;
    const size_t trained = count_trained(s, arch, &total);
    tg_error note = {0};
    tg_node_fail(tg_node_at(root, unfrozen_key(s)), unfrozen_key(s), &note,
                 "%zu of %zu parameters are trained (%" PRId64 " of %d layers%s)", trained, total,
                 n, arch->n_layers, n ? "" : ": only the norm behind the last one");
    tg_buf_printf(out, "note: %s\n", note.msg);
}

tg_status tg_fit_episode(const tg_node *root, const tg_train_settings *s, int64_t episode,
                         tg_error *err) {
    static const char key[] = "alg.policy.args.generation_kwargs.max_new_tokens";
    int64_t asked = s->rollout_gen.max_new_tokens;
    if (s->supervised || asked == INT64_MIN || asked >= episode) return TG_OK;
    return tg_node_fail(tg_node_at(root, key), key, err,
                        "is %" PRId64 ", env.args.max_episode_length %" PRId64
                        ": an episode would stop before the environment ends and rewards it; make "
                        "them equal",
                        asked, episode);
}

int tg_fit_positions(const tg_node *root, const tg_arch *arch) {
    const bool said = !tg_node_is_null(tg_node_at(root, "env.args.max_prompt_length")) ||
                      !tg_node_is_null(tg_node_at(root, "tokenizer.max_length"));
    return said ? tg_arch_trainable(arch) : arch->max_positions;
}

/* Supervised runs cut prompts to what is left, as RL4LMs does. */
static tg_status check_answers(const tg_node *root, const tg_arch *arch, int64_t max_new,
                               tg_error *err) {
    static const char key[] = "alg.generation_kwargs.max_new_tokens";
    const tg_node *at = tg_node_at(root, key);
    const int positions = tg_fit_positions(root, arch);
    if (max_new < positions || (arch->kind == TG_KIND_SEQ2SEQ && max_new == positions))
        return TG_OK;
    if (!at) at = tg_node_at(root, "alg.generation_kwargs");
    return tg_node_fail(at ? at : tg_node_get(root, "alg"), key, err,
                        "%" PRId64 " leaves no room for a prompt in the model's %d positions: "
                        "expected less",
                        max_new, positions);
}

tg_status tg_fit_lengths(const tg_node *root, const tg_train_settings *s, const tg_arch *arch,
                         int64_t max_prompt, int64_t max_new, tg_error *err) {
    if (s->supervised) return check_answers(root, arch, max_new, err);
    const bool apart = arch->kind == TG_KIND_SEQ2SEQ;
    const int positions = tg_fit_positions(root, arch);
    const int64_t room = apart ? positions : positions - max_new;
    const char *prompt = "env.args.max_prompt_length", *episode = "env.args.max_episode_length";
    const tg_node *at = tg_node_at(root, episode);
    if (room < 1 || (apart && max_new > room))
        return tg_node_fail(at ? at : tg_node_get(root, "env"), episode, err,
                            "%" PRId64 " new tokens%s are more than the model's %d positions hold: "
                            "lower it",
                            max_new, apart ? "" : " and a prompt", positions);
    if (max_prompt <= room) return TG_OK;
    at = tg_node_at(root, prompt);
    const bool said = !tg_node_is_null(at);
    return tg_node_fail(at ? at : tg_node_get(root, "env"), prompt, err,
                        "prompts of up to %" PRId64 " tokens%s and %" PRId64
                        " new ones do not fit the model's %d positions: %s at most %" PRId64 "%s",
                        max_prompt,
                        said ? "" : " (the tokenizer's limit, as this key is not there)", max_new,
                        positions, said ? "lower it to" : "set it to", room,
                        apart ? "" : ", or lower env.args.max_episode_length");
}
