/* Sessions by a number: the peer of a connection, the session's own number, or a hash of the process's uuid. Internal to
 * common/net. Lookups cost the same for one session and for ten thousand; the keys are scrambled with a secret, since
 * a peer may choose its own. */
#ifndef TG_NET_SESSION_TABLE_H
#define TG_NET_SESSION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tg_session;

typedef struct tg_session_table {
    struct tg_session_entry *entries; /* a power of two of them, or NULL */
    size_t size, used;
    uint64_t secret;
} tg_session_table;

/* One session per key: a second one takes the place of the first. False: out of memory. */
bool tg_session_table_put(tg_session_table *t, uint64_t key, struct tg_session *session);
struct tg_session *tg_session_table_get(const tg_session_table *t, uint64_t key); /* or NULL */
/* Only if the key still stands for this session. */
void tg_session_table_remove(tg_session_table *t, uint64_t key, const struct tg_session *session);
void tg_session_table_fini(tg_session_table *t);

#endif
