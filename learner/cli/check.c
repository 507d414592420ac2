/* `textgen-learner check`: are `alg` and `train_evaluation` right, and will the run fit into memory? */
#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/config/args.h"
#include "common/config/locate.h"
#include "common/config/run_config.h"
#include "common/nn/model.h"
#include "common/text/tokenizer.h"
#include "learner/cli/commands.h"
#include "learner/train/fit.h"
#include "learner/train/memory_plan.h"
#include "learner/train/run.h"

#include <stdio.h>

enum { EPISODE = 512 }; /* tokens of an episode where the config does not say */

static int64_t int_at(const tg_node *section, const char *path, int64_t otherwise) {
    int64_t value;
    const tg_node *n = tg_node_at(section, path);
    return n && tg_node_int(n, &value) && value > 0 && value < INT32_MAX ? value : otherwise;
}

/* A fresh model's vocabulary comes from the tokenizer; others do not need it here. */
static tg_status open_tokenizer(const tg_run_config *c, tg_tokenizer **out, tg_error *err) {
    const tg_node *name = tg_node_get(c->tokenizer, "model_name");
    if (!name || name->kind != TG_NODE_SCALAR)
        return tg_node_fail(c->tokenizer, "tokenizer.model_name", err, "missing");
    char *folder = NULL;
    tg_status st = tg_model_locate(name->text, &folder, err);
    if (st == TG_OK) st = tg_tokenizer_open(out, folder, err);
    tg_free(folder);
    return st == TG_OK ? st : tg_node_blame(name, "tokenizer.model_name", st, err);
}

/* As the environment decides it: its own key, the tokenizer's, the tokenizer's own limit. */
static int64_t longest_prompt(const tg_run_config *c, const tg_tokenizer *tokenizer,
                              const tg_arch *arch) {
    int64_t own = TG_MIN(tg_tokenizer_max_length(tokenizer), (int64_t)INT32_MAX - 1);
    int64_t n = int_at(c->env, "args.max_prompt_length", int_at(c->tokenizer, "max_length", own));
    return TG_MIN(n, (int64_t)tg_fit_positions(c->root, arch));
}

static tg_status check_weights(const tg_run_config *c, const tg_train_settings *s,
                               const char *folder, const tg_arch *arch, tg_error *err) {
    const char *key = s->supervised ? "alg.model_name" : "alg.policy.args.model_name";
    tg_status st = tg_model_check(folder, arch, err);
    return st == TG_OK ? st : tg_node_blame(tg_node_at(c->root, key), key, st, err);
}

static tg_status plan_memory(const tg_run_config *c, const tg_train_settings *s, bool evaluation,
                             tg_buf *out, tg_error *err) {
    tg_tokenizer *tokenizer = NULL;
    tg_arch arch = {0};
    char *folder = NULL;
    tg_status st = open_tokenizer(c, &tokenizer, err);
    if (st == TG_OK) st = tg_run_arch(c->root, s, tokenizer, &arch, &folder, err);
    if (st == TG_OK && folder) st = check_weights(c, s, folder, &arch, err);
    int64_t prompt = st == TG_OK ? longest_prompt(c, tokenizer, &arch) : 0;
    tg_tokenizer_destroy(&tokenizer);
    tg_free(folder);
    if (st != TG_OK) return st;
    const int positions = tg_fit_positions(c->root, &arch);
    int64_t new_tokens = tg_gen_max_new(&s->eval_gen, 0);
    if (!s->supervised) new_tokens = int_at(c->env, "args.max_episode_length", EPISODE);
    st = tg_fit_episode(c->root, s, new_tokens, err);
    if (st == TG_OK) st = tg_fit_lengths(c->root, s, &arch, prompt, new_tokens, err);
    if (st != TG_OK) return st;
    if (s->supervised) prompt = TG_MIN(prompt, tg_run_room(&arch, positions, (int)new_tokens));
    tg_fit_describe(c->root, s, &arch, out);
    tg_memory_facts facts = {.n_envs = (int)int_at(c->env, "n_envs", 1),
                             .max_prompt = (int)prompt,
                             .max_new = (int)new_tokens,
                             .positions = positions,
                             .uneven = true,
                             .evaluation = evaluation};
    tg_memory_plan plan;
    st = tg_memory_plan_make(&plan, s, &arch, &facts, err);
    if (st != TG_OK) return st;
    tg_memory_plan_print(&plan, out);
    tg_buf_printf(out, "matrix products: %s\n", tg_run_products(s, c->learner.backend));
    return tg_memory_plan_check(&plan, c->learner.memory_limit_bytes, err);
}

static tg_status check(const char *config, const tg_args *args, bool schema_only, bool evaluation,
                       tg_error *err) {
    tg_run_config c;
    tg_status st = tg_run_config_load(&c, config, args->overrides, args->n_overrides, err);
    if (st != TG_OK) return st;
    tg_train_settings s;
    tg_buf json = {0}, notes = {0};
    st = tg_train_settings_read(&s, c.root, schema_only, &c.arena, err);
    if (st == TG_OK && !schema_only) st = plan_memory(&c, &s, evaluation, &notes, err);
    if (st == TG_OK && s.missing[0]) tg_buf_printf(&notes, "note: %s\n", s.missing);
    if (st == TG_OK) tg_train_settings_unused(&s, c.root, &notes);
    if (notes.data) fputs(notes.data, stderr);
    if (st == TG_OK) {
        tg_train_settings_json(&s, &json);
        if (json.failed)
            st = tg_fail_nomem(err, json.len);
        else
            puts(json.data);
    }
    tg_buf_fini(&json);
    tg_buf_fini(&notes);
    tg_run_config_fini(&c);
    return st;
}

int tg_learner_check(int argc, char **argv) {
    const char *config = NULL;
    bool schema_only = false, evaluation = false;
    const tg_flag flags[] = {
        {"config", TG_FLAG_STR, &config, "FILE", "The config."},
        {"schema-only", TG_FLAG_SWITCH, &schema_only, NULL,
         "Keys, types and ranges only; models need not exist."},
        {"evaluation", TG_FLAG_SWITCH, &evaluation, NULL, "The memory plan of evaluations alone."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen-learner check",
        .usage = "--config FILE [--schema-only] [key=value…]",
        .summary = "Prints the resolved alg and train_evaluation (stdout) and the memory plan "
                   "(stderr).",
        .flags = flags,
        .examples = "  textgen-learner check --config configs/increasing_numbers.yml\n"};
    tg_args args;
    tg_error err = {0};
    if (tg_args_parse(&spec, argc, argv, &args, &err) != TG_OK)
        return tg_args_report("textgen-learner", &err);
    tg_status st = TG_OK;
    if (!args.help)
        st = config ? check(config, &args, schema_only, evaluation, &err)
                    : tg_fail(&err, TG_USAGE, "--config FILE is missing");
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report("textgen-learner", &err);
}
