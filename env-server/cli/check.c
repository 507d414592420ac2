/* textgen-env check: is this config right, and what does it say with every default made explicit? */
#include "common/base/file.h"
#include "common/config/unused.h"
#include "env-server/cli/commands.h"
#include "env-server/cli/load.h"
#include "env-server/env/env.h"

static void put_unused(const tg_loaded *l, tg_buf *out) {
    const tg_env_settings *s = &l->settings;
    const tg_node *root = l->config.root;
    tg_opts_unused(s->datapool.entry->options, tg_node_at(root, "datapool.args"), "datapool.args",
                   out);
    if (s->reward.entry)
        tg_opts_unused(s->reward.entry->options, tg_node_at(root, "reward_fn.args"),
                       "reward_fn.args", out);
    for (size_t i = 0; i < s->n_metrics; i++) {
        char path[64];
        snprintf(path, sizeof path, "train_evaluation.metrics.%zu.args", i);
        tg_opts_unused(s->metrics[i].entry->options, tg_node_at(root, path), path, out);
    }
}

static tg_status check(const char *config, const tg_args *args, bool schema_only, tg_error *err) {
    tg_loaded l;
    tg_env *env = NULL;
    tg_status st = tg_loaded_open(&l, config, args, err);
    if (st != TG_OK) return st;
    if (!schema_only) st = tg_env_open(&env, &l.settings, err);
    if (st == TG_OK) {
        tg_buf text = {0};
        tg_env_settings_json(&l.settings, &text);
        tg_buf_putc(&text, '\n');
        st = tg_stdout_write(&text, err);
        tg_buf_reset(&text);
        put_unused(&l, &text);
        if (st == TG_OK && text.len) fputs(text.data, stderr);
        tg_buf_fini(&text);
    }
    tg_env_close(&env);
    tg_loaded_close(&l);
    return st;
}

int tg_command_check(int argc, char **argv) {
    const char *config = NULL;
    bool schema_only = false;
    const tg_flag flags[] = {{"config", TG_FLAG_STR, &config, "FILE", "The config to check."},
                             {"schema-only", TG_FLAG_SWITCH, &schema_only, NULL,
                              "Only keys, types and ranges: needs no tokenizer and no data, and "
                              "accepts known components that are not built."},
                             {0}};
    const tg_args_spec spec = {
        "textgen-env check",
        "[--schema-only] CONFIG [key=value…]",
        "Checks the environment's part of a config and prints it, resolved, as JSON.",
        flags,
        "  textgen-env check configs/increasing_numbers.yml\n"
        "  textgen-env check --schema-only c.yml datapool.args.n_samples=10\n",
        0,
        1,
        false};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) st = check(config, &args, schema_only, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
