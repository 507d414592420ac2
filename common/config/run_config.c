/* The top level of a config. One option table per level, so that unknown keys are answered with the
 * nearest known one; a dump of the checked config loads to an equal config. */
#include "common/config/run_config.h"

#include "common/base/str.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const tg_opt top_table[] = {
    TG_OPT_NODE(tg_run_config, tokenizer, "Which tokenizer, and how it pads and truncates."),
    TG_OPT_NODE(tg_run_config, reward_fn, "What is rewarded: {id, args}."),
    TG_OPT_NODE(tg_run_config, datapool, "Where prompts come from: {id, args}."),
    TG_OPT_NODE(tg_run_config, env, "The token environment: {n_envs, args}."),
    TG_OPT_NODE(tg_run_config, alg, "The algorithm and its policy: {id, args, kl_div, policy}."),
    TG_OPT_NODE(tg_run_config, train_evaluation,
                "How long, how often to evaluate and save, and the metrics."),
    TG_OPT_INT(tg_run_config, seed, "0", 0, 9.2e18, "Every random draw follows from it."),
    TG_OPT_ROW(tg_run_config, compat, TG_T_STR, TG_OPT_NULLABLE, NULL, 0, 0, "rl4lms",
               "Reproduce the known bugs of another system."),
    TG_OPT_INT(tg_run_config, workers, "2", 0, 4096,
               "Environment workers that `textgen train` starts."),
    TG_OPT_ROW_KEY("learner", tg_run_config, learner_node, TG_T_NODE, TG_OPT_NULLABLE, NULL, 0, 0,
                   NULL, "The learner process."),
    TG_OPT_ROW_KEY("pool", tg_run_config, pool_node, TG_T_NODE, TG_OPT_NULLABLE, NULL, 0, 0, NULL,
                   "How learner and workers meet."),
    TG_OPT_END,
};

static const tg_opt learner_table[] = {
    TG_OPT_STR_ONE_OF(tg_learner_config, backend, "cpu", "cpu|ref",
                      "Where the numbers are computed."),
    TG_OPT_INT(tg_learner_config, threads, "0", 0, 1024,
               "Compute threads; 0 takes every core the process may use."),
    TG_OPT_INT(tg_learner_config, keep_checkpoints, "2", 1, 1000000,
               "How many of the newest checkpoints stay."),
    TG_OPT_BOOL(tg_learner_config, keep_best, "true",
                "Also keep the checkpoint with the best reward."),
    TG_OPT_NODE(tg_learner_config, memory_limit,
                "Refuse a run that plans more than this, such as 8G; null: the machine's memory."),
    TG_OPT_END,
};

static const tg_opt pool_table[] = {
    TG_OPT_STR(tg_pool_config, bind, NULL,
               "Address the learner listens on, such as tcp://0.0.0.0:5555."),
    TG_OPT_STR(
        tg_pool_config, connect, NULL,
        "Workers that listen elsewhere, separated by commas, for the learner to connect to."),
    TG_OPT_INT(tg_pool_config, min_workers, "1", 1, 4096, "Workers to wait for before starting."),
    TG_OPT_INT(tg_pool_config, call_timeout_ms, "60000", 10, 86400000,
               "Deadline of one call to a worker."),
    TG_OPT_INT(tg_pool_config, heartbeat_ms, "1000", 10, 600000, "Time between signs of life."),
    TG_OPT_STR(tg_pool_config, key, NULL,
               "File with the learner's key pair (textgen keygen): tcp is then encrypted."),
    TG_OPT_STR(tg_pool_config, server_key, NULL,
               "Public key, or its file, of the workers or the broker that `connect` names."),
    TG_OPT_STR(tg_pool_config, allow, NULL, "File of the keys that may connect to `bind`."),
    TG_OPT_BOOL(tg_pool_config, insecure, "false",
                "Listen on a tcp address that other machines reach, without keys."),
    TG_OPT_END,
};

static const tg_opt *table_of(const char *key) {
    return !strcmp(key, "learner") ? learner_table : !strcmp(key, "pool") ? pool_table : NULL;
}

bool tg_parse_size(const char *text, uint64_t *bytes) {
    size_t len = strspn(text, "0123456789");
    char digits[24] = {0};
    if (!len || len >= sizeof digits - 4) return false;
    memcpy(digits, text, len);
    int64_t value;
    if (!tg_parse_i64(digits, &value)) return false;
    const char *unit = text + len + (text[len] == ' ');
    const char *prefixes = "KMGT",
               *p = *unit ? strchr(prefixes, toupper((unsigned char)*unit)) : NULL;
    unsigned shift = p ? 10 * (unsigned)(p - prefixes + 1) : 0;
    unit += p ? 1 : 0;
    if (p && *unit == 'i') unit++;
    if (*unit == 'B' || *unit == 'b') unit++;
    if (*unit || (uint64_t)value > UINT64_MAX >> shift) return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

static tg_status read_memory_limit(tg_learner_config *l, tg_error *err) {
    const tg_node *n = l->memory_limit;
    if (tg_node_is_null(n)) return TG_OK;
    int64_t whole;
    if (tg_node_int(n, &whole) && whole > 0)
        l->memory_limit_bytes = (uint64_t)whole;
    else if (n->kind != TG_NODE_SCALAR || !tg_parse_size(n->text, &l->memory_limit_bytes) ||
             !l->memory_limit_bytes)
        return tg_node_fail(n, "learner.memory_limit", err,
                            "expected a size such as 8G or 500M, or null, found %s",
                            n->kind == TG_NODE_SCALAR ? n->text : "a section");
    return TG_OK;
}

/* A section must be a map; absent or null ones become NULL. */
static tg_status take_section(const tg_run_config *c, const char *name, const tg_node **section,
                              bool required, tg_error *err) {
    const tg_node *n = *section;
    if (tg_node_is_null(n)) {
        *section = NULL;
        if (!required) return TG_OK;
        return tg_fail(err, TG_CONFIG, "%s: the section \"%s\" is missing%s", c->file, name,
                       c->alg && !strcmp(name, "env") ? " (only supervised training can do without)"
                                                      : "");
    }
    if (n->kind == TG_NODE_MAP) return TG_OK;
    return tg_node_fail(n, name, err, "expected a section (key: value lines), found %s",
                        n->kind == TG_NODE_LIST ? "a list" : n->text);
}

static tg_status take_sections(tg_run_config *c, tg_error *err) {
    tg_status st = take_section(c, "alg", &c->alg, !c->env_only, err);
    if (st != TG_OK) return st;
    const tg_node *id = c->alg ? tg_node_get(c->alg, "id") : NULL;
    if (c->alg && (!id || id->kind != TG_NODE_SCALAR))
        return tg_node_fail(id ? id : c->alg, "alg.id", err,
                            "is required: expected an algorithm's name, such as ppo");
    c->supervised = id && strstr(id->text, "supervised");
    bool rewarded = c->alg && !c->supervised;
    struct {
        const char *name;
        const tg_node **section;
        bool required;
    } rest[] = {{"tokenizer", &c->tokenizer, true},
                {"reward_fn", &c->reward_fn, rewarded},
                {"datapool", &c->datapool, true},
                {"env", &c->env, !c->supervised},
                {"train_evaluation", &c->train_evaluation, c->alg != NULL}};
    for (size_t i = 0; st == TG_OK && i < sizeof rest / sizeof *rest; i++)
        st = take_section(c, rest[i].name, rest[i].section, rest[i].required, err);
    return st;
}

static tg_status check_all(tg_run_config *c, tg_error *err) {
    if (c->root->kind != TG_NODE_MAP)
        return tg_node_fail(
            c->root, "", err,
            "expected a config with the sections tokenizer, reward_fn, datapool, env, alg, "
            "train_evaluation");
    tg_status st = tg_opts_read(top_table, c, c->root, "", &c->arena, err);
    if (st == TG_OK)
        st = tg_opts_read(learner_table, &c->learner, c->learner_node, "learner", &c->arena, err);
    if (st == TG_OK) st = tg_opts_read(pool_table, &c->pool, c->pool_node, "pool", &c->arena, err);
    if (st == TG_OK) st = read_memory_limit(&c->learner, err);
    return st == TG_OK ? take_sections(c, err) : st;
}

static tg_status init(tg_run_config *out, tg_arena *arena, tg_node *root, bool env_only,
                      tg_error *err) {
    *out = (tg_run_config){.arena = *arena, .root = root, .file = root->file, .env_only = env_only};
    *arena = (tg_arena){0};
    tg_status st = check_all(out, err);
    if (st != TG_OK) tg_run_config_fini(out);
    return st;
}

tg_status tg_run_config_init(tg_run_config *out, tg_arena *arena, tg_node *root, tg_error *err) {
    return init(out, arena, root, false, err);
}

static tg_status load(tg_run_config *out, const char *path, const char *const *overrides,
                      size_t n_overrides, bool env_only, tg_error *err) {
    *out = (tg_run_config){0};
    tg_arena arena = {0};
    tg_node *root;
    tg_status st = tg_tree_load(&arena, path, &root, err);
    for (size_t i = 0; st == TG_OK && i < n_overrides; i++)
        st = tg_tree_override(&arena, root, overrides[i], err);
    if (st == TG_OK) return init(out, &arena, root, env_only, err);
    tg_arena_fini(&arena);
    return st;
}

tg_status tg_run_config_load(tg_run_config *out, const char *path, const char *const *overrides,
                             size_t n_overrides, tg_error *err) {
    return load(out, path, overrides, n_overrides, false, err);
}

tg_status tg_run_config_load_env(tg_run_config *out, const char *path, const char *const *overrides,
                                 size_t n_overrides, tg_error *err) {
    return load(out, path, overrides, n_overrides, true, err);
}

void tg_run_config_fini(tg_run_config *c) {
    tg_arena_fini(&c->arena);
    *c = (tg_run_config){0};
}

/* ---- the resolved config ------------------------------------------------------------------- */

static void newline(tg_buf *out, int indent) {
    tg_buf_printf(out, "\n%*s", indent, "");
}

static bool is_flat(const tg_node *n) {
    for (size_t i = 0; i < n->n_items; i++) {
        if (n->items[i]->n_items) return false;
    }
    return n->kind == TG_NODE_LIST || n->n_items == 0;
}

static void indented_json(const tg_node *n, int indent, tg_buf *out) {
    if (tg_node_is_null(n) || n->kind == TG_NODE_SCALAR || is_flat(n)) {
        tg_node_json(n, out);
        return;
    }
    bool map = n->kind == TG_NODE_MAP;
    tg_buf_putc(out, map ? '{' : '[');
    for (size_t i = 0; i < n->n_items; i++) {
        if (i) tg_buf_putc(out, ',');
        newline(out, indent + 2);
        if (map) {
            tg_json_string(out, n->items[i]->key, strlen(n->items[i]->key));
            tg_buf_puts(out, ": ");
        }
        indented_json(n->items[i], indent + 2, out);
    }
    newline(out, indent);
    tg_buf_putc(out, map ? '}' : ']');
}

static bool said_before(const tg_node *const *given, size_t n_given, const char *key) {
    for (size_t g = 0; g < n_given; g++) {
        if (tg_node_get(given[g], key)) return true;
    }
    return false;
}

/* One section: the union of what the parts say about it, else as it was written. */
static void section_json(const tg_run_config *c, const char *key, const tg_node *const *parts,
                         size_t n_parts, tg_buf *out) {
    const tg_node *given[8];
    size_t n_given = 0;
    for (size_t i = 0; i < n_parts && n_given < 8; i++) {
        const tg_node *s = tg_node_get(parts[i], key);
        if (!tg_node_is_null(s)) given[n_given++] = s;
    }
    if (n_given < 2) {
        indented_json(n_given ? given[0] : tg_node_get(c->root, key), 2, out);
        return;
    }
    tg_buf_putc(out, '{');
    bool first = true;
    for (size_t g = 0; g < n_given; g++) {
        for (size_t i = 0; i < given[g]->n_items; i++) {
            const tg_node *n = given[g]->items[i];
            if (!n->key || said_before(given, g, n->key)) continue;
            if (!first) tg_buf_putc(out, ',');
            first = false;
            newline(out, 4);
            tg_json_string(out, n->key, strlen(n->key));
            tg_buf_puts(out, ": ");
            indented_json(n, 4, out);
        }
    }
    newline(out, 2);
    tg_buf_putc(out, '}');
}

void tg_run_config_json(const tg_run_config *c, const tg_node *const *parts, size_t n_parts,
                        tg_buf *out) {
    tg_buf_putc(out, '{');
    for (const tg_opt *row = top_table; row->type != TG_T_END; row++) {
        tg_buf_puts(out, row == top_table ? "\n  " : ",\n  ");
        tg_json_string(out, row->key, strlen(row->key));
        tg_buf_puts(out, ": ");
        const tg_opt *table = table_of(row->key);
        if (table == learner_table)
            tg_opts_json(table, &c->learner, out);
        else if (table)
            tg_opts_json(table, &c->pool, out);
        else if (row->type == TG_T_NODE)
            section_json(c, row->key, parts, n_parts, out);
        else if (row->type == TG_T_INT)
            tg_buf_printf(out, "%" PRId64, *(const int64_t *)((const char *)c + row->offset));
        else if (c->compat)
            tg_json_string(out, c->compat, strlen(c->compat));
        else
            tg_buf_puts(out, "null");
    }
    tg_buf_puts(out, "\n}\n");
}
