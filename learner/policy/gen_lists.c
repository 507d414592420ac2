#include "learner/policy/gen_lists.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static tg_status wrong(const tg_gen_nodes *n, const char *key, const tg_node *at,
                       const char *expected) {
    char path[256];
    snprintf(path, sizeof path, "%s.%s", n->path, key);
    return tg_node_wrong(at, path, expected, n->err);
}

static bool read_id(const tg_node *node, int32_t *out) {
    int64_t id;
    if (!tg_node_int(node, &id) || id < 0 || id > INT32_MAX) return false;
    *out = (int32_t)id;
    return true;
}

static tg_status read_list(const tg_gen_nodes *n, const char *key, const tg_node *node,
                           const char *expected, tg_id_list *out) {
    int32_t *ids = tg_arena_alloc(n->arena, (node->n_items + 1) * sizeof *ids);
    if (!ids) return tg_fail_nomem(n->err, node->n_items * sizeof *ids);
    for (size_t i = 0; i < node->n_items; i++)
        if (!read_id(node->items[i], &ids[i])) return wrong(n, key, node->items[i], expected);
    *out = (tg_id_list){ids, (int)node->n_items};
    return TG_OK;
}

tg_status tg_gen_read_ids(const tg_gen_nodes *n, const char *key, const tg_node *node,
                          tg_id_list *out) {
    static const char expected[] = "a token id, a list of them, or null for none";
    *out = (tg_id_list){0};
    if (tg_node_is_null(node)) return TG_OK;
    if (node->kind == TG_NODE_LIST) return read_list(n, key, node, expected, out);
    int32_t *id = tg_arena_alloc(n->arena, sizeof *id);
    if (!id) return tg_fail_nomem(n->err, sizeof *id);
    if (!read_id(node, id)) return wrong(n, key, node, expected);
    *out = (tg_id_list){id, 1};
    return TG_OK;
}

tg_status tg_gen_read_lists(const tg_gen_nodes *n, const char *key, const tg_node *node,
                            tg_id_list **out, int *n_out) {
    static const char expected[] = "a list of lists of token ids, such as [[5, 7], [12]]";
    *out = NULL;
    *n_out = 0;
    if (tg_node_is_null(node)) return TG_OK;
    if (node->kind != TG_NODE_LIST || !node->n_items) return wrong(n, key, node, expected);
    tg_id_list *lists = tg_arena_alloc(n->arena, node->n_items * sizeof *lists);
    if (!lists) return tg_fail_nomem(n->err, node->n_items * sizeof *lists);
    for (size_t i = 0; i < node->n_items; i++) {
        const tg_node *item = node->items[i];
        if (item->kind != TG_NODE_LIST || !item->n_items) return wrong(n, key, item, expected);
        tg_status st = read_list(n, key, item, expected, &lists[i]);
        if (st != TG_OK) return st;
    }
    *out = lists;
    *n_out = (int)node->n_items;
    return TG_OK;
}

tg_status tg_gen_read_early(const tg_gen_nodes *n, tg_gen_settings *s) {
    const tg_node *node = s->early_stopping;
    bool early = false;
    if (!tg_node_is_null(node) && node->kind == TG_NODE_SCALAR && !strcmp(node->text, "never"))
        s->early = TG_STOP_NEVER;
    else if (tg_node_is_null(node) || tg_node_bool(node, &early))
        s->early = early ? TG_STOP_EARLY : TG_STOP_HEURISTIC;
    else
        return wrong(n, "early_stopping", node, "true, false or \"never\"");
    return TG_OK;
}

/* A sequence that is there already gets the new bias: the last one counts. */
static void set_bias(tg_gen_settings *s, tg_id_list sequence, float bias) {
    int i = 0;
    while (i < s->n_biases &&
           (s->biases[i].sequence.n != sequence.n ||
            memcmp(s->biases[i].sequence.ids, sequence.ids, (size_t)sequence.n * sizeof(int32_t))))
        i++;
    s->biases[i].sequence = sequence;
    s->biases[i].bias = bias;
    if (i == s->n_biases) s->n_biases++;
}

tg_status tg_gen_read_biases(const tg_gen_nodes *n, tg_gen_settings *s) {
    static const char expected[] = "a list of [[token ids], bias]";
    const tg_node *node = s->sequence_bias;
    if (tg_node_is_null(node)) return TG_OK;
    if (node->kind != TG_NODE_LIST || !node->n_items)
        return wrong(n, "sequence_bias", node, expected);
    s->biases = tg_arena_alloc(n->arena, node->n_items * sizeof *s->biases);
    if (!s->biases) return tg_fail_nomem(n->err, node->n_items * sizeof *s->biases);
    for (size_t i = 0; i < node->n_items; i++) {
        const tg_node *item = node->items[i];
        double bias;
        tg_id_list sequence;
        if (item->kind != TG_NODE_LIST || item->n_items != 2 ||
            item->items[0]->kind != TG_NODE_LIST || !item->items[0]->n_items ||
            !tg_node_float(item->items[1], &bias))
            return wrong(n, "sequence_bias", item, expected);
        tg_status st = read_list(n, "sequence_bias", item->items[0], expected, &sequence);
        if (st != TG_OK) return st;
        set_bias(s, sequence, (float)bias);
    }
    return TG_OK;
}

tg_status tg_gen_read_decay(const tg_gen_nodes *n, tg_gen_settings *s) {
    static const char expected[] = "[start, factor], such as [10, 1.05]";
    const char *key = "exponential_decay_length_penalty";
    const tg_node *node = s->exponential_decay_length_penalty;
    s->decay_start = INT64_MIN;
    if (tg_node_is_null(node)) return TG_OK;
    if (node->kind != TG_NODE_LIST || node->n_items != 2 ||
        !tg_node_int(node->items[0], &s->decay_start) ||
        !tg_node_float(node->items[1], &s->decay_factor) || s->decay_start < 0)
        return wrong(n, key, node, expected);
    return TG_OK;
}

tg_status tg_gen_read_eos(const tg_gen_nodes *n, tg_gen_settings *s) {
    tg_id_list list;
    tg_status st = tg_gen_read_ids(n, "eos_token_id", s->eos_token_id, &list);
    if (st != TG_OK) return st;
    if (list.n > TG_GEN_MAX_EOS) return wrong(n, "eos_token_id", s->eos_token_id, "at most 16 ids");
    s->n_eos = list.n;
    for (int i = 0; i < list.n; i++) s->eos_ids[i] = list.ids[i];
    if (!list.n) s->eos_ids[0] = -1;
    return TG_OK;
}
