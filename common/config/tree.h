/* A configuration as a tree: what YAML (or JSON, which is YAML) says, with the file and line of
 * every node.
 *
 *     tg_node *root;
 *     tg_tree_load(&arena, "ppo.yml", &root, err);
 *     tg_tree_override(&arena, root, "alg.args.n_epochs=2", err);
 *     const tg_node *n = tg_node_at(root, "alg.args.n_epochs");    // NULL when absent
 *
 * All memory belongs to the arena. Limits: 4 MiB, depth 64, no duplicate keys; aliases are copied
 * once. */
#ifndef TG_CONFIG_TREE_H
#define TG_CONFIG_TREE_H

#include "common/base/arena.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tg_node_kind { TG_NODE_NULL, TG_NODE_SCALAR, TG_NODE_LIST, TG_NODE_MAP } tg_node_kind;

typedef struct tg_node {
    tg_node_kind kind;
    const char *key;  /* within a map, else NULL */
    const char *text; /* scalar: its text */
    bool quoted;      /* scalar was quoted: always a string */
    struct tg_node **items;
    size_t n_items;
    const char *file; /* where it was written; "command line" for overrides */
    int line;         /* 1-based; 0 when there is none */
} tg_node;

tg_status tg_tree_load(tg_arena *a, const char *path, tg_node **out, tg_error *err) TG_MUST_CHECK;
tg_status tg_tree_parse(tg_arena *a, const char *name, const char *text, size_t len, tg_node **out,
                        tg_error *err) TG_MUST_CHECK;

/* "a.b.c=value": value is YAML (a scalar, [list] or {map}). Makes missing maps; list items by index
 * ("metrics.0.id"). */
tg_status tg_tree_override(tg_arena *a, tg_node *root, const char *assignment,
                           tg_error *err) TG_MUST_CHECK;

const tg_node *tg_node_get(const tg_node *map, const char *key); /* NULL when absent or not a map */
const tg_node *tg_node_at(const tg_node *root, const char *path);

/* Typed readings of one scalar. YAML 1.1 words (yes, on, True, ~, null, 1_000, .inf) as PyYAML
 * reads them, and numbers such as 1e-6, which PyYAML takes for text, as numbers. False: not of that
 * type. */
bool tg_node_bool(const tg_node *n, bool *out);
bool tg_node_int(const tg_node *n, int64_t *out);
bool tg_node_float(const tg_node *n, double *out);
bool tg_node_is_null(const tg_node *n); /* absent (NULL), empty, null or ~ */

#endif
