/* `textgen list`: what the two programs can do, from their registries. Each prints a JSON array of {kind, name, summary, built,
 * options}; here they are joined, filtered by kind and shown. */
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/cli/command.h"
#include "common/cli/process.h"
#include "common/config/args.h"
#include "common/config/json.h"
#include "common/config/listing.h"
#include "common/config/tree.h"

#include <stdio.h>
#include <string.h>

enum { ENTRIES_MAX = 1024, KINDS_MAX = 64 };

typedef struct listing {
    tg_arena arena;
    const tg_node *entries[ENTRIES_MAX];
    size_t n_entries;
    const char *kinds[KINDS_MAX]; /* in order of first appearance */
    size_t n_kinds;
} listing;

static const char *text_of(const tg_node *entry, const char *key) {
    const tg_node *n = tg_node_get(entry, key);
    return n && n->kind == TG_NODE_SCALAR ? n->text : "";
}

static void add_entry(listing *l, const tg_node *entry) {
    if (l->n_entries < ENTRIES_MAX) l->entries[l->n_entries++] = entry;
    const char *kind = text_of(entry, "kind");
    for (size_t i = 0; i < l->n_kinds; i++) {
        if (!strcmp(l->kinds[i], kind)) return;
    }
    if (l->n_kinds < KINDS_MAX) l->kinds[l->n_kinds++] = kind;
}

static tg_status collect(listing *l, const char *binary, tg_error *err) {
    tg_buf out = {0}, said = {0};
    int code = 0;
    tg_status st = tg_child_capture(binary, (const char *const[]){"list", "--json", NULL}, &out,
                                    &said, &code, err);
    tg_node *root = NULL;
    if (st == TG_OK && code)
        st = tg_fail(err, TG_UNAVAILABLE, "%s list ended with exit code %d: %s", binary, code,
                     said.data ? said.data : "");
    if (st == TG_OK) st = tg_tree_parse(&l->arena, binary, out.data, out.len, &root, err);
    if (st == TG_OK && root->kind != TG_NODE_LIST)
        st = tg_fail(err, TG_BUG, "%s list: expected a JSON array", binary);
    for (size_t i = 0; st == TG_OK && i < root->n_items; i++) add_entry(l, root->items[i]);
    tg_buf_fini(&out);
    tg_buf_fini(&said);
    return st;
}

static tg_status find_kind(const listing *l, const char *wanted, const char **kind, tg_error *err) {
    for (size_t i = 0; i < l->n_kinds; i++) {
        if (tg_kind_is(l->kinds[i], wanted)) {
            *kind = l->kinds[i];
            return TG_OK;
        }
    }
    const char *near = tg_nearest(wanted, l->kinds, l->n_kinds);
    if (near)
        return tg_fail(err, TG_USAGE, "unknown kind \"%s\", did you mean \"%s\"?", wanted, near);
    char known[512] = "";
    for (size_t i = 0, n = 0; i < l->n_kinds && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", l->kinds[i]);
    return tg_fail(err, TG_USAGE, "unknown kind \"%s\"; kinds are %s", wanted, known);
}

static void print_option(const tg_node *option) {
    tg_buf def = {0};
    bool required = false;
    const tg_node *flag = tg_node_get(option, "required");
    if (!tg_node_bool(flag, &required) || !required)
        tg_node_json(tg_node_get(option, "default"), &def);
    printf("      %-26s %-6s %-14s %s\n", text_of(option, "key"), text_of(option, "type"),
           def.data ? def.data : "required", text_of(option, "help"));
    tg_buf_fini(&def);
}

static void print_entry(const tg_node *entry) {
    bool built = true;
    const tg_node *flag = tg_node_get(entry, "built");
    if (flag && !tg_node_bool(flag, &built)) built = true;
    printf("  %-34s %s%s\n", text_of(entry, "name"), text_of(entry, "summary"),
           built ? "" : " (not built in this version)");
    const tg_node *options = tg_node_get(entry, "options");
    for (size_t i = 0; built && options && i < options->n_items; i++)
        print_option(options->items[i]);
}

static void print_table(const listing *l, const char *kind) {
    for (size_t k = 0; k < l->n_kinds; k++) {
        if (kind && strcmp(kind, l->kinds[k]) != 0) continue;
        printf("%s\n", l->kinds[k]);
        for (size_t i = 0; i < l->n_entries; i++) {
            if (!strcmp(text_of(l->entries[i], "kind"), l->kinds[k])) print_entry(l->entries[i]);
        }
    }
}

static tg_status print_json(const listing *l, const char *kind, tg_error *err) {
    tg_buf out = {0};
    tg_buf_puts(&out, "[");
    for (size_t i = 0, n = 0; i < l->n_entries; i++) {
        if (kind && strcmp(text_of(l->entries[i], "kind"), kind) != 0) continue;
        tg_buf_puts(&out, n++ ? ",\n " : "\n ");
        tg_node_json(l->entries[i], &out);
    }
    tg_buf_puts(&out, "\n]\n");
    tg_status st = tg_stdout_write(&out, err);
    tg_buf_fini(&out);
    return st;
}

static tg_status list(const char *wanted, bool json, tg_error *err) {
    listing l = {0};
    const char *kind = NULL;
    tg_status st = collect(&l, "textgen-env", err);
    if (st == TG_OK) st = collect(&l, "textgen-learner", err);
    if (st == TG_OK && wanted) st = find_kind(&l, wanted, &kind, err);
    if (st == TG_OK && json)
        st = print_json(&l, kind, err);
    else if (st == TG_OK)
        print_table(&l, kind);
    tg_arena_fini(&l.arena);
    return st;
}

int tg_cmd_list(int argc, char **argv) {
    bool json = false;
    const tg_flag flags[] = {
        {"json", TG_FLAG_SWITCH, &json, NULL, "An array of {kind, name, summary, built, options}."},
        {0}};
    const tg_args_spec spec = {
        .name = "textgen list",
        .usage = "[KIND] [--json]",
        .summary = "Lists what a config can name (rewards, metrics, data pools, algorithms …) with "
                   "every option and its default.",
        .flags = flags,
        .examples = "  textgen list\n  textgen list reward\n  textgen list metric --json\n",
        .max_positional = 1};
    tg_args args;
    tg_error err = {0};
    tg_status st = tg_args_parse(&spec, argc, argv, &args, &err);
    if (st != TG_OK) return tg_args_report(spec.name, &err);
    if (!args.help) st = list(args.n_positional ? args.positional[0] : NULL, json, &err);
    tg_args_fini(&args);
    return st == TG_OK ? 0 : tg_args_report(spec.name, &err);
}
