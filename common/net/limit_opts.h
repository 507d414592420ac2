/* What a listening process takes from each of its peers, as options: the same for workers and brokers.
 *
 *     tg_limit_opts limits = TG_LIMIT_OPTS_DEFAULT;
 *     const tg_flag flags[] = {TG_LIMIT_FLAGS(limits), {0}};
 *     tg_limit_opts_check(&limits, err);
 *     tg_limit_opts_apply(&limits, &link_opts);      // told in Welcome, and kept */
#ifndef TG_NET_LIMIT_OPTS_H
#define TG_NET_LIMIT_OPTS_H

#include "common/base/status.h"
#include "common/net/link.h"

#include <stdint.h>

typedef struct tg_limit_opts {
    int64_t max_message; /* MiB */
    int64_t max_slots, max_batch, max_tenant_sessions, handshake_ms;
} tg_limit_opts;

#define TG_LIMIT_OPTS_DEFAULT                                                                      \
    { .max_message = 64, .max_slots = 65536, .max_batch = 4096, .handshake_ms = 5000 }

/* Rows for a table of flags (common/config/args.h); o is a tg_limit_opts. */
#define TG_LIMIT_FLAGS(o)                                                                          \
    {"max-message", TG_FLAG_INT, &(o).max_message, "MIB",                                          \
     "Largest message taken from a client, 2 to 64 MiB (64)."},                                    \
        {"max-slots", TG_FLAG_INT, &(o).max_slots, "N",                                            \
         "Slots that one client may have (65536)."},                                               \
        {"max-batch", TG_FLAG_INT, &(o).max_batch, "N",                                            \
         "Resets, steps or texts in one message of a client, up to 4096 (4096)."},                 \
        {"max-tenant-sessions", TG_FLAG_INT, &(o).max_tenant_sessions, "N",                        \
         "Sessions that one tenant may have open (0: any number)."},                               \
    {                                                                                              \
        "handshake-ms", TG_FLAG_INT, &(o).handshake_ms, "MS",                                      \
            "A connection that is none yet after this is dropped (5000)."                          \
    }

tg_status tg_limit_opts_check(const tg_limit_opts *o, tg_error *err) TG_MUST_CHECK; /* TG_USAGE */
void tg_limit_opts_apply(const tg_limit_opts *o, tg_link_opts *link);

#endif
