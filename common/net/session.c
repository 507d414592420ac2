/* One peer of a link: its beginning, loss, return and end. On the loop's thread.
 *
 * Callbacks of the owner may end any session, so no loop here holds a session across one. */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/link_internal.h"
#include "proto/codec.h"
#include "proto/limits.h"

#include <string.h>

tg_session *tg_session_create(tg_link *link, tg_peer peer, uint64_t id, uint32_t heartbeat_ms,
                              void *keep) {
    tg_session *s = tg_alloc(sizeof *s);
    if (!s) return NULL;
    if (!tg_session_table_put(&link->by_id, id, s) ||
        !tg_session_table_put(&link->by_peer, peer, s)) {
        tg_session_table_remove(&link->by_id, id, s);
        tg_free(s);
        return NULL;
    }
    s->link = link;
    s->peer = peer;
    s->fd = -1;
    s->id = id;
    s->epoch = 1;
    s->heartbeat_ms = heartbeat_ms;
    s->limits = (tg_limits){TG_LIMIT_MESSAGE, TG_LIMIT_SLOTS, TG_LIMIT_BATCH, TG_LIMIT_TOKENS};
    s->heard_ms = s->beat_ms = tg_clock_ms();
    s->keep = keep;
    s->software = "";
    s->next = link->sessions;
    if (s->next) s->next->before = s;
    link->sessions = s;
    link->n_sessions++;
    tg_link_tick_for(link, heartbeat_ms);
    return s;
}

static uint64_t uuid_key(const uint8_t uuid[16]) {
    uint64_t halves[2];
    memcpy(halves, uuid, sizeof halves);
    return halves[0] ^ (halves[1] << 1 | halves[1] >> 63);
}

bool tg_session_set_uuid(tg_session *s, const uint8_t uuid[16]) {
    tg_session_table *t = &s->link->by_uuid;
    if (!tg_session_table_put(t, uuid_key(uuid), s)) return false;
    if (memcmp(s->uuid, uuid, 16) != 0) tg_session_table_remove(t, uuid_key(s->uuid), s);
    memcpy(s->uuid, uuid, 16);
    return true;
}

tg_session *tg_session_of_uuid(tg_link *link, const uint8_t uuid[16]) {
    tg_session *s = tg_session_table_get(&link->by_uuid, uuid_key(uuid));
    return s && !memcmp(s->uuid, uuid, 16) ? s : NULL;
}

/* Only a listening link gives credits. */
static void count_credits(tg_session *s, bool connected) {
    tg_link *link = s->link;
    if (!link->opts.listen || !s->taken) return;
    if (connected)
        link->credits += s->credits;
    else
        link->credits -= s->credits, link->unanswered -= s->unanswered;
}

void tg_session_taken(tg_session *s) {
    s->taken = true;
    count_credits(s, true);
}

static void unlink_session(tg_session *s) {
    tg_link *link = s->link;
    if (!s->detached) count_credits(s, false);
    if (s->next) s->next->before = s->before;
    if (s->before)
        s->before->next = s->next;
    else
        link->sessions = s->next;
    link->n_sessions--;
    link->n_detached -= s->detached;
    tg_session_table_remove(&link->by_id, s->id, s);
    tg_session_table_remove(&link->by_uuid, uuid_key(s->uuid), s);
    if (!s->detached) tg_session_table_remove(&link->by_peer, s->peer, s);
}

void tg_session_drop(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    unlink_session(s);
    if (link->ep && !s->detached) tg_endpoint_forget(link->ep, s->peer);
    if (!s->detached && !s->gone && s->taken)
        tg_strangers_add(&link->strangers, s->fd, /* it may say Hello again */
                         tg_clock_ms() + (uint64_t)link->opts.hello_ms);
    if (s->taken) {
        tg_log_debug("net", "%s: session %llx ends: %s", link->address, (unsigned long long)s->id,
                     reason);
        link->opts.ops->on_close(link->opts.arg, s, reason);
    }
    tg_msg_free(s->keep);
    tg_free(s);
}

tg_session *tg_session_of_peer(tg_link *link, tg_peer peer) {
    return tg_session_table_get(&link->by_peer, peer);
}

tg_session *tg_link_find(tg_link *link, uint64_t session_id) {
    tg_session *s = link ? tg_session_table_get(&link->by_id, session_id) : NULL;
    return s && s->taken ? s : NULL;
}

/* ---- loss and return ------------------------------------------------------------------------ */

void tg_session_detach(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    tg_session_table_remove(&link->by_peer, s->peer, s);
    if (link->ep) tg_endpoint_forget(link->ep, s->peer);
    count_credits(s, false);
    s->unanswered = 0;
    s->detached = true;
    s->detached_ms = tg_clock_ms();
    if (!s->gone)
        tg_strangers_add(&link->strangers, s->fd, s->detached_ms + (uint64_t)link->opts.hello_ms);
    s->gone = false;
    s->fd = -1;
    s->probes = 0;
    link->n_detached++;
    link->opts.ops->on_detach(link->opts.arg, s, reason);
}

bool tg_session_attach(tg_session *s, tg_peer peer, int fd, void *keep) {
    tg_link *link = s->link;
    if (!tg_session_table_put(&link->by_peer, peer, s)) return false;
    s->peer = peer;
    s->fd = fd;
    s->detached = false;
    link->n_detached--;
    s->epoch++;
    s->unanswered = 0;
    s->missed = 0;
    s->loss = TG_LOSS_NONE;
    count_credits(s, true);
    s->heard_ms = s->beat_ms = tg_clock_ms();
    tg_msg_free(s->keep);
    s->keep = keep;
    return true;
}

void tg_session_lose(tg_session *s, const char *reason) {
    tg_link *link = s->link;
    bool returns = s->taken && s->has_token && link->opts.ops->on_detach &&
                   (link->opts.listen || link->opts.resume);
    link->stats.lost++;
    if (s->loss == TG_LOSS_NONE) s->loss = TG_LOSS_DISCONNECTED;
    if (returns)
        tg_session_detach(s, reason);
    else
        tg_session_drop(s, reason);
    tg_link_redial(link, reason);
}

bool tg_link_evict(tg_link *link) {
    tg_session *oldest = NULL;
    for (tg_session *s = link->n_detached ? link->sessions : NULL; s; s = s->next) {
        if (s->detached && (!oldest || s->detached_ms < oldest->detached_ms)) oldest = s;
    }
    if (!oldest) return false;
    link->stats.expired++;
    tg_session_drop(oldest, "its place was needed");
    return true;
}

/* ---- what it is ----------------------------------------------------------------------------- */

uint64_t tg_session_id(const tg_session *s) {
    return s->id;
}

uint64_t tg_session_epoch(const tg_session *s) {
    return s->epoch;
}

bool tg_session_detached(const tg_session *s) {
    return s->detached;
}

tg_loss tg_session_loss(const tg_session *s) {
    return s->loss;
}

tg_role tg_session_peer_role(const tg_session *s) {
    return s->role;
}

uint32_t tg_session_minor(const tg_session *s) {
    return s->minor;
}

const char *tg_session_tenant(const tg_session *s) {
    return s->peer_user.tenant;
}

const uint8_t *tg_session_resume_token(const tg_session *s) {
    return s->has_token ? s->token : NULL;
}

uint32_t tg_session_credits(const tg_session *s) {
    return s->credits;
}

const tg_reward_fn *tg_session_functions(const tg_session *s, size_t *n) {
    *n = s->n_functions;
    return s->functions;
}

const tg_env_spec *tg_session_spec(const tg_session *s) {
    return s->spec;
}

const uint8_t *tg_session_peer_uuid(const tg_session *s) {
    return s->uuid;
}

const tg_user *tg_session_peer_user(const tg_session *s) {
    return &s->peer_user;
}

const char *tg_session_peer_software(const tg_session *s) {
    return s->software;
}

const tg_heartbeat *tg_session_last_beat(const tg_session *s) {
    return &s->last_beat;
}

const tg_limits *tg_session_limits(const tg_session *s) {
    return &s->limits;
}

uint64_t tg_session_idle_ms(const tg_session *s) {
    return tg_clock_ms() - s->heard_ms;
}

void tg_session_set_user(tg_session *s, void *user) {
    s->user = user;
}

void *tg_session_user(const tg_session *s) {
    return s->user;
}
