/* What a model's folder says about generation. As transformers does, generation_config.json alone counts where it exists; folders from
 * before it have the same keys in config.json. */
#include "learner/policy/gen_settings.h"

#include "common/base/str.h"
#include "common/nn/family/config_json.h"
#include "common/nn/tensor_set.h"

#include <stdlib.h>
#include <string.h>

static tg_status add_key(tg_node *map, const char *key, const json_t *value, const char *file,
                         tg_arena *arena, tg_error *err) {
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    if (!text) return tg_fail_nomem(err, 0);
    tg_node *node = NULL;
    tg_status st = tg_tree_parse(arena, file, text, strlen(text), &node, err);
    free(text); /* jansson's memory */
    if (st != TG_OK) return st;
    node->key = key;
    map->items[map->n_items++] = node;
    return TG_OK;
}

/* null, or the negative number that old folders have in place of a token there is not. */
static bool is_none(const char *key, const json_t *value) {
    return !value || json_is_null(value) ||
           (tg_str_ends(key, "_token_id") && json_is_integer(value) &&
            json_integer_value(value) < 0);
}

/* A number that is null stands for the default where the folder has no other: transformers 4 would take the folder's, 5 would
 * not. */
static tg_status check_null(const tg_opt *row, const tg_node *given, const json_t *value,
                            const char *file, tg_error *err) {
    if (!(row->flags & TG_OPT_NULL_ABSENT) || !tg_node_is_null(given)) return TG_OK;
    const bool same = json_is_boolean(value)
                          ? json_is_true(value) == !strcmp(row->def, "true")
                          : json_is_number(value) && json_number_value(value) == atof(row->def);
    if (same) return TG_OK;
    return tg_node_fail(
        given, row->key, err,
        "null is what %s says in transformers 4, and not in 5; leave the key out to "
        "follow the file, or write %s for the default",
        file, row->def);
}

static tg_status merge(const tg_node **node, const json_t *root, const char *file, tg_arena *arena,
                       tg_error *err) {
    size_t n_given = *node ? (*node)->n_items : 0, n_keys = 0;
    while (tg_gen_options[n_keys].type != TG_T_END) n_keys++;
    tg_node *map = tg_arena_alloc(arena, sizeof *map);
    tg_node **items = tg_arena_array(arena, n_given + n_keys, sizeof *items);
    if (!map || !items) return tg_fail_nomem(err, (n_given + n_keys) * sizeof *items);
    *map = *node ? **node : (tg_node){.kind = TG_NODE_MAP, .file = file};
    if (n_given) memcpy(items, (*node)->items, n_given * sizeof *items);
    map->kind = TG_NODE_MAP;
    map->items = items;
    map->n_items = n_given;
    for (const tg_opt *row = tg_gen_options; row->type != TG_T_END; row++) {
        const json_t *value = json_object_get(root, row->key);
        const tg_node *given = tg_node_get(*node, row->key);
        if (is_none(row->key, value)) continue;
        tg_status st = given ? check_null(row, given, value, file, err)
                             : add_key(map, row->key, value, file, arena, err);
        if (st != TG_OK) return st;
    }
    *node = map;
    return TG_OK;
}

tg_status tg_gen_model_defaults(const tg_node **node, const char *folder, tg_arena *arena,
                                tg_error *err) {
    if (tg_node_is_null(*node)) *node = NULL;
    if (*node && (*node)->kind != TG_NODE_MAP) return TG_OK; /* the reader says what is wrong */
    tg_status st = TG_OK;
    for (int legacy = 0; legacy < 2; legacy++) {
        const char *name = legacy ? "config.json" : "generation_config.json";
        if (!tg_folder_has(folder, name)) continue;
        tg_config_json config;
        st = tg_config_json_open(&config, folder, name, err);
        if (st != TG_OK) return st;
        if (legacy) st = tg_config_json_renew(config.root, err);
        const char *file = st == TG_OK ? tg_arena_strdup(arena, config.path) : NULL;
        st = file ? merge(node, config.root, file, arena, err) : tg_fail_nomem(err, 0);
        tg_config_json_close(&config);
        break;
    }
    return st;
}
