/* The slots of one client. */
#include "env-server/server/client.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

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
    for (size_t i = 0; i < c->slots.n; i++) free_slot(tg_by_id_at(&c->slots, i));
    tg_by_id_fini(&c->slots);
    tg_free(c);
}

tg_client_slot *tg_client_find(const tg_client *c, uint32_t id) {
    return tg_by_id_find(&c->slots, id);
}

tg_status tg_client_open_slot(tg_client *c, uint32_t id, tg_error *err) {
    if (tg_by_id_find(&c->slots, id)) return TG_OK;
    tg_client_slot *s = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->id = id;
    if (tg_by_id_add(&c->slots, s)) return TG_OK;
    tg_free(s);
    return tg_fail_nomem(err, c->slots.n * sizeof s);
}

void tg_client_close_slot(tg_client *c, uint32_t id) {
    tg_client_slot *s = tg_by_id_remove(&c->slots, id);
    if (!s) return;
    TG_ASSERT(!s->call);
    free_slot(s);
}
