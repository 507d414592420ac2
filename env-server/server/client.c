/* The slots of one client, in an array sorted by id. */
#include "env-server/server/client.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

tg_status tg_client_create(tg_client **out, tg_error *err) {
    tg_client *c = *out = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    c->refs = 1;
    return TG_OK;
}

void tg_client_ref(tg_client *c) {
    c->refs++;
}

tg_slot *tg_client_new_episode(const tg_env *env, uint32_t id) {
    tg_slot *slot = tg_alloc(sizeof *slot);
    if (!slot) return NULL;
    if (tg_slot_init(slot, env, id, NULL) == TG_OK) return slot;
    tg_free(slot);
    return NULL;
}

void tg_client_drop_episode(tg_slot *slot) {
    if (!slot) return;
    tg_slot_fini(slot);
    tg_free(slot);
}

static void free_slot(tg_client_slot *s) {
    tg_client_drop_episode(s->slot);
    tg_free(s);
}

void tg_client_unref(tg_client *c) {
    if (--c->refs > 0) return;
    for (size_t i = 0; i < c->n_slots; i++) free_slot(c->slots[i]);
    tg_free(c->slots);
    tg_free(c);
}

/* Where the id is, or would stand. */
static size_t position(const tg_client *c, uint32_t id) {
    size_t low = 0, high = c->n_slots;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c->slots[mid]->id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

tg_client_slot *tg_client_find(const tg_client *c, uint32_t id) {
    size_t at = position(c, id);
    return at < c->n_slots && c->slots[at]->id == id ? c->slots[at] : NULL;
}

tg_status tg_client_open_slot(tg_client *c, uint32_t id, tg_error *err) {
    size_t at = position(c, id);
    if (at < c->n_slots && c->slots[at]->id == id) return TG_OK;
    if (c->n_slots == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        tg_client_slot **slots = tg_realloc_array(c->slots, cap, sizeof *slots);
        if (!slots) return tg_fail_nomem(err, cap * sizeof *slots);
        c->slots = slots, c->cap = cap;
    }
    tg_client_slot *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->id = id;
    memmove(c->slots + at + 1, c->slots + at, (c->n_slots - at) * sizeof *c->slots);
    c->slots[at] = s;
    c->n_slots++;
    return TG_OK;
}

void tg_client_close_slot(tg_client *c, uint32_t id) {
    size_t at = position(c, id);
    if (at == c->n_slots || c->slots[at]->id != id) return;
    TG_ASSERT(!c->slots[at]->call);
    free_slot(c->slots[at]);
    c->n_slots--;
    memmove(c->slots + at, c->slots + at + 1, (c->n_slots - at) * sizeof *c->slots);
}
