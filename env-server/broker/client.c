/* A client's slots, in an array sorted by id. */
#include "env-server/broker/client.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "common/net/result.h"

#include <string.h>

tg_status tg_broker_client_create(tg_broker_client **out, uint64_t session, tg_error *err) {
    tg_broker_client *c = *out = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    c->session = session;
    return TG_OK;
}

static void free_slot(tg_broker_slot *s) {
    tg_buf_fini(&s->reset_bytes);
    tg_buf_fini(&s->step_bytes);
    tg_free(s);
}

void tg_broker_client_destroy(tg_broker_client **client) {
    tg_broker_client *c = *client;
    if (!c) return;
    *client = NULL;
    for (size_t i = 0; i < c->n_slots; i++) free_slot(c->slots[i]);
    tg_free(c->slots);
    tg_free(c);
}

/* Where the id is, or would stand. */
static size_t position(const tg_broker_client *c, uint32_t id) {
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

tg_broker_slot *tg_broker_client_find(const tg_broker_client *c, uint32_t id) {
    size_t at = position(c, id);
    return at < c->n_slots && c->slots[at]->id == id ? c->slots[at] : NULL;
}

tg_status tg_broker_client_add(tg_broker_client *c, uint32_t id, uint32_t place,
                               tg_broker_slot **out, tg_error *err) {
    *out = NULL;
    if (c->n_slots == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 4;
        tg_broker_slot **slots = tg_realloc_array(c->slots, cap, sizeof *slots);
        if (!slots) return tg_fail_nomem(err, cap * sizeof *slots);
        c->slots = slots, c->cap = cap;
    }
    tg_broker_slot *s = *out = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->client = c, s->id = id, s->place = place;
    size_t at = position(c, id);
    memmove(c->slots + at + 1, c->slots + at, (c->n_slots - at) * sizeof *c->slots);
    c->slots[at] = s;
    c->n_slots++;
    return TG_OK;
}

void tg_broker_client_remove(tg_broker_client *c, tg_broker_slot *slot) {
    size_t at = position(c, slot->id);
    free_slot(slot);
    c->n_slots--;
    memmove(c->slots + at, c->slots + at + 1, (c->n_slots - at) * sizeof *c->slots);
}

/* ---- what was answered ---------------------------------------------------------------------- */

void tg_broker_slot_begin(tg_broker_slot *s, const tg_reset_item *item) {
    s->reset = *item;
    s->has_reset = s->has_step = false;
}

void tg_broker_slot_keep_reset(tg_broker_slot *s, const tg_reset_result *r) {
    s->has_reset =
        r->code == TG_CODE_OK && tg_reset_result_copy(&s->reset_result, &s->reset_bytes, r);
}

void tg_broker_slot_keep_step(tg_broker_slot *s, const tg_step_result *r) {
    s->has_step = r->code == TG_CODE_OK && tg_step_result_copy(&s->step_result, &s->step_bytes, r);
    s->step = s->asked_step;
    s->tokens_hash = s->asked_hash;
}

uint64_t tg_broker_hash_tokens(const int32_t *tokens, size_t n) {
    return tg_siphash(n, 0x746f6b656e73, tokens, n * sizeof *tokens);
}
