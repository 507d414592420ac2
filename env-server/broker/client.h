/* One client of the broker and its slots: which slot of the fleet stands behind each, and the last answers, so that a
 * repeated request is answered as before even when the worker that gave the answer is gone. */
#ifndef TG_BROKER_CLIENT_H
#define TG_BROKER_CLIENT_H

#include "common/base/buf.h"
#include "common/base/by_id.h"
#include "common/base/status.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_broker_client tg_broker_client;

/* A request of a client with items not yet answered: the last answer says that none follows. */
typedef struct tg_broker_request {
    uint64_t session, seq;
    size_t left; /* items */
    uint64_t start_ns;
    struct tg_broker_request *next; /* among the spare ones */
} tg_broker_request;

typedef struct tg_broker_slot {
    uint32_t id; /* chosen by the client */
    tg_broker_client *client;
    uint32_t place;             /* the fleet's number */
    tg_broker_request *request; /* under way */
    /* the reset of the episode at hand */
    tg_reset_item reset;
    tg_reset_result reset_result;
    tg_buf reset_bytes;
    bool has_reset;
    /* its last step, and the one under way */
    uint32_t step, asked_step;
    uint64_t tokens_hash, asked_hash;
    tg_step_result step_result;
    tg_buf step_bytes;
    bool has_step;
    /* for a Snapshot; the sample's id and prompt are those of reset_result, also after a Restore */
    bool live;    /* an episode was begun or restored */
    tg_stop stop; /* of its last token */
    tg_reward_status reward_status;
} tg_broker_slot;

struct tg_broker_client {
    uint64_t session;
    tg_by_id slots; /* of tg_broker_slot */
};

tg_status tg_broker_client_create(tg_broker_client **out, uint64_t session,
                                  tg_error *err) TG_MUST_CHECK;
void tg_broker_client_destroy(tg_broker_client **client); /* its slots, too */

tg_broker_slot *tg_broker_client_find(const tg_broker_client *c, uint32_t id); /* NULL: not open */
tg_status tg_broker_client_add(tg_broker_client *c, uint32_t id, uint32_t place,
                               tg_broker_slot **out, tg_error *err) TG_MUST_CHECK;
void tg_broker_client_remove(tg_broker_client *c, tg_broker_slot *slot); /* frees it */

/* Answers are kept (results are copied). */
void tg_broker_slot_keep_reset(tg_broker_slot *s, const tg_reset_result *r);
void tg_broker_slot_keep_restore(tg_broker_slot *s, const tg_restore_result *r);
void tg_broker_slot_keep_step(tg_broker_slot *s, const tg_step_result *r);
/* A new episode: nothing of the old one is answered any more. */
void tg_broker_slot_begin(tg_broker_slot *s, const tg_reset_item *item);

uint64_t tg_broker_hash_tokens(const int32_t *tokens, size_t n);

#endif
