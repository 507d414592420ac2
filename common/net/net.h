/* The ZeroMQ context: one per process or per group of sockets, with its I/O threads and, where keys are
 * used, the thread that decides who may connect.
 *
 *     tg_net_create(&net, err);
 *     tg_net_secure(net, sec, err);      // sec may be NULL
 *     ... endpoints ...
 *     tg_net_destroy(&net); */
#ifndef TG_NET_NET_H
#define TG_NET_NET_H

#include "common/base/status.h"
#include "common/net/security.h"

#include <stdint.h>

typedef struct tg_net tg_net;

tg_status tg_net_create(tg_net **out, tg_error *err) TG_MUST_CHECK;
/* After its endpoints are closed; waits for their linger time at most. */
void tg_net_destroy(tg_net **net);

/* Before the first endpoint. sec is borrowed until tg_net_destroy; NULL: no encryption. */
tg_status tg_net_secure(tg_net *net, tg_security *sec, tg_error *err) TG_MUST_CHECK;
tg_security *tg_net_security(const tg_net *net);
/* Connections by key: let in, refused. Zeros without keys. */
void tg_net_auth_counts(const tg_net *net, uint64_t *accepted, uint64_t *refused);

/* For endpoint.c. */
void *tg_net_context(const tg_net *net);
uint32_t tg_net_serial(tg_net *net); /* another number at each call */

#endif
