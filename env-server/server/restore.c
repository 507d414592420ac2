/* Episodes from a client's log, and what slots hold for a client that came back. */
#include "common/base/check.h"
#include "common/net/result.h"
#include "env-server/server/server_impl.h"
#include "proto/limits.h"

_Static_assert((int)TG_EPISODES_MAX <= (int)TG_LIMIT_BATCH, "fits into a message");

/* In as many replies as it takes: all but the last have MORE. Snapshots likewise. */
static void reply_restored(tg_server *s, tg_session *session, const tg_frame *head,
                           const tg_restore_result *results, size_t n) {
    size_t first = 0, bytes = 0;
    tg_frame more = *head;
    more.flags |= TG_FRAME_MORE;
    for (size_t i = 0; i + 1 < n; i++) {
        bytes += tg_restore_result_bytes(&results[i]);
        if (bytes < TG_EPISODES_BYTES) continue;
        tg_restore_reply reply = {results + first, i + 1 - first};
        tg_server_reply(s, session, &more, TG_MSG_RESTORE_REPLY, &reply);
        first = i + 1, bytes = 0;
    }
    tg_restore_reply reply = {results + first, n - first};
    tg_server_reply(s, session, head, TG_MSG_RESTORE_REPLY, &reply);
}

void tg_server_restore(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                       const void *msg) {
    const tg_restore_batch *batch = msg;
    tg_restore_result *results = tg_arena_array(&s->scratch, batch->n + 1, sizeof *results);
    if (!results) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    s->batches++;
    for (size_t i = 0; i < batch->n; i++) {
        const tg_restore_item *item = &batch->items[i];
        tg_restore_result *r = &results[i];
        *r = (tg_restore_result){.slot = item->slot, .episode = item->episode};
        r->message = r->sample_id = "";
        tg_client_slot *slot = tg_server_slot_anew(s, session, client, head, item->slot,
                                                   item->episode, &r->code, &r->message);
        if (slot && !tg_server_cancel(s, slot))
            r->code = TG_CODE_OVERLOADED, r->message = "out of memory";
        else if (slot)
            tg_slot_restore(s->env, slot->slot, item, r);
        if (slot) tg_server_recount(s, slot);
    }
    reply_restored(s, session, head, results, batch->n);
}

void tg_server_snapshot(tg_server *s, tg_session *session, tg_client *client, const tg_frame *head,
                        const void *msg) {
    const tg_slot_list *list = msg;
    size_t n = list->n ? list->n : client->slots.n, filled = 0, bytes = 0;
    tg_snapshot *items = tg_arena_array(&s->scratch, TG_EPISODES_MAX, sizeof *items);
    if (!items) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const tg_client_slot *slot =
            list->n ? tg_client_find(client, list->slots[i]) : tg_by_id_at(&client->slots, i);
        tg_snapshot *x = &items[filled++];
        *x = (tg_snapshot){.slot = slot ? slot->id : list->slots[i], .split = TG_SPLIT_TRAIN};
        x->sample_id = "";
        if (slot && slot->slot) tg_slot_snapshot(s->env, slot->slot, x);
        bytes += tg_snapshot_bytes(x);
        if (i + 1 == n || (filled < TG_EPISODES_MAX && bytes < TG_EPISODES_BYTES)) continue;
        tg_frame more = *head;
        more.flags |= TG_FRAME_MORE;
        tg_snapshot_reply reply = {items, filled};
        tg_server_reply(s, session, &more, TG_MSG_SNAPSHOT_REPLY, &reply);
        filled = bytes = 0;
    }
    tg_snapshot_reply reply = {items, filled};
    tg_server_reply(s, session, head, TG_MSG_SNAPSHOT_REPLY, &reply);
}

/* No reply of its own: the calls that are given up have theirs. */
void tg_server_cancel_slots(tg_server *s, tg_session *session, tg_client *client,
                            const tg_frame *head, const void *msg) {
    const tg_slot_list *list = msg;
    for (size_t i = 0; i < list->n; i++) {
        tg_client_slot *slot = tg_client_find(client, list->slots[i]);
        if (!slot || tg_server_outdated(session, slot, head)) continue;
        if (!tg_server_cancel(s, slot))
            tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
    }
    s->completed++;
}
