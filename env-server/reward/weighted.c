/* The reward weighted: a sum of several, each with its weight. An environment takes it apart, so that every part is
 * logged under its own name; scored on its own it is the sum. */
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "env-server/reward/inner.h"
#include "env-server/reward/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct options {
    const tg_node *rewards;
};
static const tg_opt options[] = {
    TG_OPT_NODE(struct options, rewards,
                "The parts: a list of {id, args, weight (1), name (the id)}."),
    TG_OPT_END};

struct part {
    const char *name;
    double weight;
};
static const tg_opt part_options[] = {
    TG_OPT_STR(struct part, name, NULL, "Name of the part in logs; default: its id."),
    TG_OPT_FLOAT(struct part, weight, "1.0", -1e9, 1e9, "Factor of the part in the sum."),
    TG_OPT_END};

struct state {
    tg_reward *parts;
    char **names; /* owned; NULL: the id */
    size_t n;
};

static void close_reward(void *state) {
    struct state *s = state;
    for (size_t i = 0; i < s->n; i++) {
        tg_reward_close(&s->parts[i]);
        tg_free(s->names[i]);
    }
    tg_free(s->parts);
    tg_free(s->names);
}

/* Splits {id, args, weight, name}: *own gets the last two, *rest the others. */
static void split_section(const tg_node *section, tg_node *own, tg_node *rest, tg_node **own_items,
                          tg_node **rest_items) {
    *own = *rest = *section;
    own->items = own_items, rest->items = rest_items;
    own->n_items = rest->n_items = 0;
    for (size_t i = 0; i < section->n_items; i++) {
        tg_node *item = section->items[i];
        if (!strcmp(item->key, "weight") || !strcmp(item->key, "name"))
            own_items[own->n_items++] = item;
        else
            rest_items[rest->n_items++] = item;
    }
}

static tg_status open_part(struct state *s, const tg_node *section, size_t i,
                           const tg_open_context *ctx, tg_error *err) {
    char path[64];
    struct part p;
    tg_node own, rest;
    tg_arena arena = {0};
    snprintf(path, sizeof path, "rewards.%zu", i);
    if (section->kind != TG_NODE_MAP)
        return tg_node_fail(section, path, err, "expected {id, args, weight, name}");
    tg_node **items = tg_alloc_array(2 * section->n_items + 1, sizeof *items);
    if (!items) return tg_fail_nomem(err, section->n_items * sizeof *items);
    split_section(section, &own, &rest, items, items + section->n_items);
    tg_status st = tg_opts_read(part_options, &p, &own, path, &arena, err);
    if (st == TG_OK) st = tg_reward_open_section(&s->parts[i], &rest, path, ctx, err);
    if (st == TG_OK) {
        s->n++;
        s->parts[i].weight = p.weight;
        if (p.name) s->names[i] = tg_strdup(p.name);
        if (p.name && !s->names[i]) st = tg_fail_nomem(err, strlen(p.name));
        if (s->names[i]) s->parts[i].name = s->names[i];
    }
    tg_arena_fini(&arena);
    tg_free(items);
    return st;
}

static tg_status check_names(const struct state *s, const tg_node *list, tg_error *err) {
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(s->parts[i].name, s->parts[k].name))
                return tg_node_fail(list->items[i], "rewards", err,
                                    "two parts are named '%s'; give one of them another `name`",
                                    s->parts[i].name);
    return TG_OK;
}

static tg_status open_reward(void *state, const void *opts, const tg_open_context *ctx,
                             tg_error *err) {
    struct state *s = state;
    const tg_node *list = ((const struct options *)opts)->rewards;
    if (tg_node_is_null(list) || list->kind != TG_NODE_LIST || !list->n_items)
        return tg_fail(err, TG_CONFIG,
                       "weighted: rewards: expected a list of {id, args, weight, name}");
    s->parts = tg_alloc_array(list->n_items, sizeof *s->parts);
    s->names = tg_alloc_array(list->n_items, sizeof *s->names);
    tg_status st =
        s->parts && s->names ? TG_OK : tg_fail_nomem(err, list->n_items * sizeof *s->parts);
    for (size_t i = 0; i < list->n_items && st == TG_OK; i++)
        st = open_part(s, list->items[i], i, ctx, err);
    if (st == TG_OK) st = check_names(s, list, err);
    if (st != TG_OK) close_reward(s);
    return st;
}

static tg_status score(const void *state, const tg_reward_input *in, size_t n, tg_reward_value *out,
                       tg_error *err) {
    const struct state *s = state;
    tg_reward_value *part = tg_alloc_array(n, sizeof *part);
    if (!part) return tg_fail_nomem(err, n * sizeof *part);
    tg_status st = TG_OK;
    for (size_t i = 0; i < n; i++) out[i] = (tg_reward_value){TG_REWARD_OK, 0};
    for (size_t k = 0; k < s->n && st == TG_OK; k++) {
        st = tg_reward_score(&s->parts[k], in, n, part, err);
        for (size_t i = 0; i < n && st == TG_OK; i++) {
            if (out[i].status == TG_REWARD_OK) out[i].status = part[i].status;
            out[i].value += s->parts[k].weight * part[i].value;
        }
    }
    tg_free(part);
    return st;
}

static const tg_reward *inner(const void *state, size_t *n) {
    const struct state *s = state;
    *n = s->n;
    return s->parts;
}

static void traits(const void *state, tg_reward_traits *t) {
    const struct state *s = state;
    t->terminal = true;
    for (size_t i = 0; i < s->n; i++) {
        const tg_reward_traits *part = &s->parts[i].traits;
        t->terminal &= part->terminal;
        t->wants_before |= part->wants_before;
        t->slow |= part->slow;
        t->waits |= part->waits;
        t->remote |= part->remote;
        t->deterministic &= part->deterministic;
        t->ranked |= part->ranked;
    }
}

tg_reward *tg_reward_parts(const tg_reward *r, size_t *n) {
    if (r->ops != &tg_reward_weighted) return NULL;
    const struct state *s = r->state;
    *n = s->n;
    return s->parts;
}

const tg_reward_ops tg_reward_weighted = {
    .entry = {.name = "weighted",
              .summary = "Weighted sum of several rewards, each logged by its name.",
              .options = options,
              .options_size = sizeof(struct options),
              .built = true},
    .state_size = sizeof(struct state),
    .deterministic = true,
    .open = open_reward,
    .close = close_reward,
    .traits = traits,
    .inner = inner,
    .score = score,
};
