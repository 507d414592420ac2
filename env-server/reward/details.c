/* A short list of components; linear search, since there are a handful. */
#include "env-server/reward/details.h"

#include "common/base/alloc.h"
#include "proto/limits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tg_component *find(tg_reward_details *d, const char *name) {
    for (size_t i = 0; i < d->n; i++)
        if (!strcmp(d->items[i].name, name)) return &d->items[i];
    return NULL;
}

static tg_component *append(tg_reward_details *d, const char *name) {
    if (d->n == TG_LIMIT_COMPONENTS) return NULL;
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 4;
        tg_component *items = tg_realloc_array(d->items, cap, sizeof *items);
        if (!items) return NULL;
        d->items = items, d->cap = cap;
    }
    char *copy = tg_arena_strdup(&d->arena, name);
    if (!copy) return NULL;
    d->items[d->n] = (tg_component){.name = copy, .status = TG_REWARD_OK};
    return &d->items[d->n++];
}

void tg_reward_details_add(tg_reward_details *d, const char *name, double value,
                           tg_reward_status status) {
    char full[TG_LIMIT_NAME + 1];
    int len = snprintf(full, sizeof full, "%s%s%s", d->prefix ? d->prefix : "",
                       d->prefix && *d->prefix ? "." : "", name);
    if (len <= 0 || (size_t)len >= sizeof full) return;
    tg_component *c = find(d, full);
    if (!c) c = append(d, full);
    if (!c) return;
    if (status == TG_REWARD_OK && !isfinite(c->value + value)) status = TG_REWARD_INVALID;
    if (c->status == TG_REWARD_OK) c->status = status;
    c->value = c->status == TG_REWARD_OK ? c->value + value : (double)NAN;
}

void tg_reward_details_reset(tg_reward_details *d) {
    d->n = 0;
    tg_arena_reset(&d->arena);
}

void tg_reward_details_fini(tg_reward_details *d) {
    tg_free(d->items);
    tg_arena_fini(&d->arena);
    *d = (tg_reward_details){0};
}
