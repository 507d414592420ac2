/* A client's slots, and the answers that are kept for them. */
#include "env-server/broker/client.h"

#include "common/base/alloc.h"
#include "common/base/hash.h"
#include "common/net/result.h"

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
    for (size_t i = 0; i < c->slots.n; i++) free_slot(tg_by_id_at(&c->slots, i));
    tg_by_id_fini(&c->slots);
    tg_free(c);
}

tg_broker_slot *tg_broker_client_find(const tg_broker_client *c, uint32_t id) {
    return tg_by_id_find(&c->slots, id);
}

tg_status tg_broker_client_add(tg_broker_client *c, uint32_t id, uint32_t place,
                               tg_broker_slot **out, tg_error *err) {
    tg_broker_slot *s = *out = tg_alloc(sizeof *s);
    if (!s) return tg_fail_nomem(err, sizeof *s);
    s->client = c, s->id = id, s->place = place;
    if (tg_by_id_add(&c->slots, s)) return TG_OK;
    tg_free(s);
    *out = NULL;
    return tg_fail_nomem(err, c->slots.n * sizeof s);
}

void tg_broker_client_remove(tg_broker_client *c, tg_broker_slot *slot) {
    tg_by_id_remove(&c->slots, slot->id);
    free_slot(slot);
}

/* ---- what was answered ---------------------------------------------------------------------- */

void tg_broker_slot_begin(tg_broker_slot *s, const tg_reset_item *item) {
    s->reset = *item;
    s->has_reset = s->has_step = s->live = false;
    s->stop = TG_STOP_NONE;
    s->reward_status = 0;
}

void tg_broker_slot_keep_reset(tg_broker_slot *s, const tg_reset_result *r) {
    s->has_reset = s->live =
        r->code == TG_CODE_OK && tg_reset_result_copy(&s->reset_result, &s->reset_bytes, r);
}

/* A Reset of the episode is not answered from this: it has no digest of its beginning. A worker that is older than these
 * fields says none of them. */
void tg_broker_slot_keep_restore(tg_broker_slot *s, const tg_restore_result *r) {
    bool told = r->n_prompt || *r->sample_id || r->reward_status;
    const tg_reset_result begun = {.message = "",
                                   .prompt_text = "",
                                   .sample_id = r->sample_id,
                                   .prompt = r->prompt,
                                   .n_prompt = r->n_prompt};
    s->live = r->code == TG_CODE_OK && told &&
              tg_reset_result_copy(&s->reset_result, &s->reset_bytes, &begun);
    s->stop = r->stop, s->reward_status = r->reward_status;
}

void tg_broker_slot_keep_step(tg_broker_slot *s, const tg_step_result *r) {
    s->has_step = r->code == TG_CODE_OK && tg_step_result_copy(&s->step_result, &s->step_bytes, r);
    s->step = s->asked_step;
    s->tokens_hash = s->asked_hash;
    if (r->n_applied) s->stop = r->stop, s->reward_status = r->reward_status;
}

uint64_t tg_broker_hash_tokens(const int32_t *tokens, size_t n) {
    return tg_siphash(n, 0x746f6b656e73, tokens, n * sizeof *tokens);
}
