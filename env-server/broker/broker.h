/* The broker: workers (and reward workers) dial its back, clients its front. To a client it looks like one large
 * worker; to a worker like a client.
 *
 *     tg_broker_run(&opts, err);     // until SIGTERM or SIGINT
 *
 * One thread, one loop. A worker that dies is replaced without the clients' notice (common/net/fleet.h); a client that
 * is cut off finds its slots again within the lease. The broker keeps nothing on disk: after its own end the clients
 * open their slots again at its successor and put their episodes back from their own logs. */
#ifndef TG_BROKER_H
#define TG_BROKER_H

#include "common/base/status.h"
#include "common/net/limit_opts.h"
#include "common/net/ops_opts.h"
#include "common/net/security.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_broker_opts {
    const char *front, *back; /* addresses to listen on */
    bool insecure;            /* allow addresses other machines can reach without keys */
    tg_security *security;    /* keys; borrowed; NULL: none */
    int min_workers;          /* clients are asked to wait for so many; 0: 1 */
    int heartbeat_ms;         /* 0: the default */
    int lease_ms;             /* 0: the default */
    tg_ops_opts ops;          /* HTTP port, log */
    tg_limit_opts limits;     /* what a client may ask for */
    int drain_ms;             /* 0: 10000; calls under way may take so long when the broker ends */
} tg_broker_opts;

/* Prints "textgen-broker ready …" on stdout once it listens. TG_OK after a drain. */
tg_status tg_broker_run(const tg_broker_opts *opts, tg_error *err) TG_MUST_CHECK;

#endif
