/* The slots of a client: opened, closed, given up, and told of. Answered at once. */
#include "common/base/alloc.h"
#include "common/net/result.h"
#include "env-server/broker/broker_impl.h"

void tg_broker_close_slot(tg_broker *b, tg_broker_client *c, tg_broker_slot *s) {
    tg_fleet_cancel(b->fleet, s->place); /* so that its request has all its answers */
    tg_fleet_remove_slot(b->fleet, s->place);
    b->by_place[TG_FLEET_PLACE(s->place)] = NULL;
    tg_broker_client_remove(c, s);
}

static tg_status open_slot(tg_broker *b, tg_broker_client *c, uint32_t id, tg_error *err) {
    uint32_t place;
    tg_broker_slot *s;
    tg_status st = tg_fleet_add_slot(b->fleet, &place, err);
    if (st != TG_OK) return st;
    st = tg_broker_client_add(c, id, place, &s, err);
    if (st != TG_OK)
        tg_fleet_remove_slot(b->fleet, place);
    else
        b->by_place[TG_FLEET_PLACE(place)] = s;
    return st;
}

/* As many as there is room for, in the order asked. */
void tg_broker_open_slots(tg_broker *b, tg_session *session, tg_broker_client *c,
                          const tg_frame *head, const void *msg) {
    const tg_slot_list *list = msg;
    tg_fleet_stats st;
    tg_error err = {0};
    size_t given = 0;
    tg_fleet_get_stats(b->fleet, &st);
    for (; given < list->n; given++) {
        if (tg_broker_client_find(c, list->slots[given])) continue;
        if (st.slots >= st.capacity || c->slots.n >= (size_t)b->opts.limits.max_slots) break;
        if (open_slot(b, c, list->slots[given], &err) != TG_OK) break;
        st.slots++;
    }
    if (given == 0 && list->n > 0) {
        tg_session_send_busy(session, head, TG_PRESSURE_SLOTS,
                             "no room for further slots: %zu are open, the workers have room for "
                             "%llu, a client may have %lld",
                             st.slots, (unsigned long long)st.capacity,
                             (long long)b->opts.limits.max_slots);
        return;
    }
    tg_slot_list opened = {list->slots, given};
    tg_frame reply = {.type = TG_MSG_SLOTS_OPENED, .flags = TG_FRAME_REPLY, .seq = head->seq};
    tg_broker_send(b, c->session, &reply, &opened);
}

void tg_broker_close_slots(tg_broker *b, tg_session *session, tg_broker_client *c,
                           const tg_frame *head, const void *msg) {
    const tg_slot_list *list = msg;
    (void)session, (void)head;
    for (size_t i = 0; i < list->n; i++) {
        tg_broker_slot *s = tg_broker_client_find(c, list->slots[i]);
        if (s) tg_broker_close_slot(b, c, s);
    }
}

void tg_broker_cancel(tg_broker *b, tg_session *session, tg_broker_client *c, const tg_frame *head,
                      const void *msg) {
    const tg_slot_list *list = msg;
    (void)session, (void)head;
    for (size_t i = 0; i < list->n; i++) {
        tg_broker_slot *s = tg_broker_client_find(c, list->slots[i]);
        if (s) tg_fleet_cancel(b->fleet, s->place);
    }
}

static tg_snapshot no_episode(uint32_t slot) {
    return (tg_snapshot){.slot = slot, .split = TG_SPLIT_TRAIN, .sample_id = ""};
}

static tg_snapshot snapshot_of(const tg_broker *b, const tg_broker_slot *s) {
    tg_fleet_log_view log = tg_fleet_slot_log(b->fleet, s->place);
    tg_snapshot x = no_episode(s->id);
    if (!s->live || log.aborted) return x;
    x.live = true;
    x.episode = log.reset.episode, x.seed = log.reset.seed, x.split = log.reset.split;
    x.sample = log.reset.sample, x.sample_id = s->reset_result.sample_id;
    x.prompt = s->reset_result.prompt, x.n_prompt = s->reset_result.n_prompt;
    x.tokens = log.tokens, x.rewards = log.rewards, x.n_tokens = log.n;
    x.state_digest = log.digest;
    x.terminated = s->stop == TG_STOP_EOS || s->stop == TG_STOP_SEQUENCE;
    x.truncated = s->stop == TG_STOP_LENGTH;
    x.stop = s->stop, x.reward_status = s->reward_status;
    return x;
}

/* In as many replies as it takes: all but the last have MORE. */
void tg_broker_snapshot(tg_broker *b, tg_session *session, tg_broker_client *c,
                        const tg_frame *head, const void *msg) {
    const tg_slot_list *list = msg;
    size_t n = list->n ? list->n : c->slots.n, filled = 0, bytes = 0;
    tg_snapshot *items = tg_alloc_array(TG_EPISODES_MAX, sizeof *items);
    if (!items) {
        tg_session_send_busy(session, head, TG_PRESSURE_MEMORY, "out of memory");
        return;
    }
    tg_frame to = {.type = TG_MSG_SNAPSHOT_REPLY, .flags = TG_FRAME_REPLY, .seq = head->seq};
    tg_frame more = to;
    more.flags |= TG_FRAME_MORE;
    for (size_t i = 0; i < n; i++) {
        const tg_broker_slot *s =
            list->n ? tg_broker_client_find(c, list->slots[i]) : tg_by_id_at(&c->slots, i);
        items[filled] = s ? snapshot_of(b, s) : no_episode(list->slots[i]);
        bytes += tg_snapshot_bytes(&items[filled++]);
        if (i + 1 == n || (filled < TG_EPISODES_MAX && bytes < TG_EPISODES_BYTES)) continue;
        tg_broker_send(b, c->session, &more, &(tg_snapshot_reply){items, filled});
        filled = bytes = 0;
    }
    tg_broker_send(b, c->session, &to, &(tg_snapshot_reply){items, filled});
    tg_free(items);
}
