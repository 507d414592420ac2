/* A worker process's server: one environment, offered to clients over one address.
 *
 *     tg_server_run(env, &opts, err);     // until SIGTERM, SIGINT or the parent's end
 *
 * One thread runs the libuv loop, the socket and the slots; metrics, samples and slow rewards run on
 * the job pool. Nothing else is shared. */
#ifndef TG_ENV_SERVER_H
#define TG_ENV_SERVER_H

#include "common/base/status.h"
#include "common/net/limit_opts.h"
#include "common/net/ops.h"
#include "common/net/security.h"
#include "env-server/env/env.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_server_opts {
    const char *bind, *connect; /* exactly one */
    bool insecure;              /* allow a non-loopback tcp address without keys */
    tg_security *security; /* keys; borrowed; its allow-list is read again on SIGHUP; NULL: none */
    int heartbeat_ms;      /* 0: the default */
    int threads;           /* of the job pool; 0: 2, with rewards had elsewhere 64 */
    tg_limit_opts limits;  /* what a client may ask for */
    uint32_t capacity;     /* slots over all clients; 0: 65536 */
    int lease_ms;     /* how long a lost client's slots are kept; 0: 60000; negative: not at all */
    uint32_t credits; /* requests that a client may have unanswered; 0: 512 */
    tg_ops_opts ops;  /* HTTP port, log */
    int drain_ms;     /* how long calls under way may take after SIGTERM; 0: 10000 */
    int parent_fd;    /* a pipe whose end means that the parent died; -1: none */
} tg_server_opts;

/* Prints "textgen-env ready …" on stdout once it can work. TG_OK after a drain. TG_TIMEOUT: calls did not end in time and were given
 * up; their threads go on using env and what belongs to it, so these must stay until the process ends. */
tg_status tg_server_run(tg_env *env, const tg_server_opts *opts, tg_error *err) TG_MUST_CHECK;

#endif
