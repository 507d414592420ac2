/* One client's slots. A client lives from its session's opening until the session is over and no call of
 * its slots is under way any more. Loop thread only.
 *
 * A slot that is open but was never reset costs some 50 bytes: the episode's memory comes with the first
 * reset. */
#ifndef TG_ENV_CLIENT_H
#define TG_ENV_CLIENT_H

#include "common/base/by_id.h"
#include "env-server/env/slot.h"

#include <stddef.h>
#include <stdint.h>

struct tg_step_job;

typedef struct tg_client_slot {
    uint32_t id;              /* chosen by the client */
    uint64_t batch;           /* the last batch that named it */
    uint64_t epoch, seq;      /* of the request that opened it or began its episode */
    tg_slot *slot;            /* NULL: never reset */
    struct tg_step_job *call; /* under way: scoring holds `slot`; NULL: none */
    int phase;                /* tg_slot_phase, as it is counted (figures.h) */
} tg_client_slot;

typedef struct tg_client {
    int refs;
    bool closed;    /* its session is over: its slots are not counted any more */
    tg_by_id slots; /* of tg_client_slot */
} tg_client;

tg_status tg_client_create(tg_client **out, tg_error *err) TG_MUST_CHECK;
void tg_client_ref(tg_client *c);
void tg_client_unref(tg_client *c); /* frees with the last one */

tg_client_slot *tg_client_find(const tg_client *c, uint32_t id); /* NULL: not open */
/* Opens a slot; one that is open stays as it is. */
tg_status tg_client_open_slot(tg_client *c, uint32_t id, tg_error *err) TG_MUST_CHECK;
void tg_client_close_slot(tg_client *c, uint32_t id); /* not open is fine; no call under way */

/* An empty slot of this id. NULL: out of memory. tg_client_drop_episode takes NULL. */
tg_slot *tg_client_new_episode(const tg_env *env, uint32_t id);
void tg_client_drop_episode(tg_slot *slot);

#endif
