/* Finding a node by its path, and "a.b.c=value" on the command line. Maps are walked by key, lists
 * by index. */
#include "common/config/tree.h"

#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 128 };

static const char COMMAND_LINE[] = "command line";

const tg_node *tg_node_get(const tg_node *map, const char *key) {
    if (!map || map->kind != TG_NODE_MAP) return NULL;
    for (size_t i = 0; i < map->n_items; i++) {
        if (!strcmp(map->items[i]->key, key)) return map->items[i];
    }
    return NULL;
}

/* Where the child named by the `len` first characters of `name` stands; -1 when there is none. */
static int64_t child_index(const tg_node *n, const char *name, size_t len) {
    if (n->kind == TG_NODE_MAP) {
        for (size_t i = 0; i < n->n_items; i++) {
            if (strlen(n->items[i]->key) == len && !memcmp(n->items[i]->key, name, len))
                return (int64_t)i;
        }
    } else if (n->kind == TG_NODE_LIST && len && len < 10 && strspn(name, "0123456789") >= len) {
        char digits[10] = {0};
        memcpy(digits, name, len);
        int64_t i;
        if (tg_parse_i64(digits, &i) && (uint64_t)i < n->n_items) return i;
    }
    return -1;
}

const tg_node *tg_node_at(const tg_node *root, const char *path) {
    while (root && *path) {
        size_t len = strcspn(path, ".");
        int64_t i = child_index(root, path, len);
        root = i < 0 ? NULL : root->items[i];
        path += len + (path[len] == '.');
    }
    return root;
}

static tg_status append(tg_arena *a, tg_node *parent, tg_node *child, tg_error *err) {
    tg_node **grown = tg_arena_array(a, parent->n_items + 1, sizeof *grown);
    if (!grown) return tg_fail_nomem(err, (parent->n_items + 1) * sizeof *grown);
    if (parent->n_items) memcpy(grown, parent->items, parent->n_items * sizeof *grown);
    grown[parent->n_items++] = child;
    parent->items = grown;
    return TG_OK;
}

/* Makes room for a child that is not there yet: a key of a map, or the item behind a list's last.
 */
static tg_status add_child(tg_arena *a, tg_node *parent, const char *path, size_t upto,
                           const char *name, size_t len, tg_node **out, tg_error *err) {
    if (parent->kind == TG_NODE_NULL) parent->kind = TG_NODE_MAP;
    if (parent->kind == TG_NODE_SCALAR)
        return tg_fail(err, TG_CONFIG,
                       "%s: %.*s: \"%.80s\" is a value, not a section that could hold %.*s",
                       COMMAND_LINE, (int)upto, path, parent->text, (int)len, name);
    if (parent->kind == TG_NODE_LIST) {
        char next[24];
        snprintf(next, sizeof next, "%zu", parent->n_items);
        if (strlen(next) != len || memcmp(next, name, len) != 0)
            return tg_fail(
                err, TG_CONFIG,
                "%s: %.*s: is a list of %zu: expected an index from 0 to %zu, found \"%.*s\"",
                COMMAND_LINE, (int)upto, path, parent->n_items, parent->n_items, (int)len, name);
    }
    tg_node *child = tg_arena_alloc(a, sizeof *child);
    char *key = tg_arena_strndup(a, name, len);
    if (!child || !key) return tg_fail_nomem(err, sizeof *child + len);
    child->file = COMMAND_LINE;
    child->key = parent->kind == TG_NODE_MAP ? key : NULL;
    *out = child;
    return append(a, parent, child, err);
}

static void forget_lines(tg_node *n) {
    n->line = 0;
    for (size_t i = 0; i < n->n_items; i++) forget_lines(n->items[i]);
}

static tg_status parse_value(tg_arena *a, const char *assignment, const char *value, tg_node **out,
                             tg_error *err) {
    tg_error why = {0};
    tg_status st = tg_tree_parse(a, COMMAND_LINE, value, strlen(value), out, &why);
    if (st != TG_OK && !strstr(why.msg, "not valid YAML")) /* a key twice, too many values … */
        return tg_fail(err, st, "\"%.200s\": %s", assignment, why.msg);
    if (st == TG_CONFIG)
        return tg_fail(err, TG_CONFIG,
                       "%s: \"%.200s\": the value is not valid YAML; put quotes around a text with "
                       "special characters: %s='\"...\"'",
                       COMMAND_LINE, assignment, "key");
    if (st == TG_OK) forget_lines(*out);
    return st;
}

/* The name that starts at p: its length, or 0 when it is empty, too long or not made of printable
 * ASCII. */
static size_t name_len(const char *p) {
    size_t len = strcspn(p, ".=");
    for (size_t i = 0; i < len; i++) {
        if (p[i] <= ' ' || p[i] > '~') return 0;
    }
    return len <= NAME_MAX_LEN ? len : 0;
}

tg_status tg_tree_override(tg_arena *a, tg_node *root, const char *assignment, tg_error *err) {
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return tg_fail(err, TG_USAGE, "%s: expected key=value, found \"%.200s\"", COMMAND_LINE,
                       assignment);
    tg_node *value;
    tg_status st = parse_value(a, assignment, equals + 1, &value, err);
    if (st != TG_OK) return st;
    tg_node *n = root;
    for (const char *p = assignment; p <= equals;) {
        size_t len = name_len(p);
        if (!len)
            return tg_fail(err, TG_USAGE,
                           "%s: \"%.200s\": expected key=value with names joined by dots, such as "
                           "alg.args.n_epochs=2",
                           COMMAND_LINE, assignment);
        int64_t i = child_index(n, p, len);
        size_t upto = p == assignment ? 0 : (size_t)(p - assignment) - 1;
        if (i >= 0)
            n = n->items[i];
        else if ((st = add_child(a, n, assignment, upto, p, len, &n, err)) != TG_OK)
            return st;
        p += len + 1;
    }
    const char *key = n->key;
    *n = *value;
    n->key = key;
    return TG_OK;
}
