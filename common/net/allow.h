/* Who may connect: a list of public keys, each with what it may be and for whom.
 *
 *     # key (40 characters)                     role     tenant
 *     Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID  client   team-a
 *     rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7  worker   pool
 *
 * Roles: client, worker, reward; admin may be any of them. A tenant is 1 to 32 letters, digits, '.', '_'
 * and '-'. Lines that begin with '#' are comments. A key stands once.
 *
 * Lookups come from the thread that answers ZeroMQ's questions and from event loops, reloading from
 * one of them: every function locks. */
#ifndef TG_NET_ALLOW_H
#define TG_NET_ALLOW_H

#include "common/base/status.h"
#include "common/net/keys.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TG_TENANT_MAX = 32, TG_USER_MAX = 48, TG_ALLOW_MAX = 100000 };

/* Who a connection belongs to, as ZeroMQ's handshake proved it. */
typedef struct tg_user {
    char role[8];                   /* "client", "worker", "reward", "admin"; "" nobody proved */
    char tenant[TG_TENANT_MAX + 1]; /* "" without keys */
    uint64_t key_id;                /* of the public key; 0 without keys */
} tg_user;

typedef struct tg_allow_entry {
    uint8_t key[TG_KEY_BYTES];
    tg_user user;
} tg_allow_entry;

typedef struct tg_allow tg_allow;

/* Reads the list. TG_DENIED: others may change the file; TG_DATA: "FILE:LINE: …". */
tg_status tg_allow_open(tg_allow **out, const char *path, tg_error *err) TG_MUST_CHECK;
void tg_allow_close(tg_allow **allow);
/* Reads the file again; on failure the old list stays in force. */
tg_status tg_allow_reload(tg_allow *allow, tg_error *err) TG_MUST_CHECK;
size_t tg_allow_count(tg_allow *allow);
/* Counts the successful reloads; a change means: look again whom you know. */
uint64_t tg_allow_generation(tg_allow *allow);
/* The user of a key; false: not in the list. */
bool tg_allow_find(tg_allow *allow, const uint8_t key[TG_KEY_BYTES], tg_user *user);
/* Whether the list still has this key with this role and tenant. */
bool tg_allow_has(tg_allow *allow, const tg_user *user);

/* Parses the text of a list into a sorted array (tg_free); name is for messages. */
tg_status tg_allow_parse(const char *text, size_t len, const char *name, tg_allow_entry **out,
                         size_t *n, tg_error *err) TG_MUST_CHECK;

/* "role:tenant", and back (the key id is left 0); false: not of that form. */
void tg_user_text(const tg_user *user, char out[TG_USER_MAX]);
bool tg_user_parse(tg_user *out, const char *text);
/* Whether a key of this user may say Hello with that role. */
bool tg_user_may(const tg_user *user, tg_role role);
/* Names of roles; 0 and NULL when there is none. */
bool tg_allow_is_role(const char *name, size_t len);
bool tg_allow_is_tenant(const char *name, size_t len);

#endif
