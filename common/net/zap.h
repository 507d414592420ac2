/* The answer to ZeroMQ's question "may this key connect?" (ZAP, rfc.zeromq.org/spec/27): an own thread
 * on the context, started before anything listens.
 *
 *     tg_zap_start(&zap, zmq_context, allow, err);
 *     ... sockets with ZMQ_ZAP_DOMAIN ...
 *     zmq_ctx_term(zmq_context);       // ends the thread
 *     tg_zap_join(&zap);
 *
 * A key of the list is answered with 200, the user id "role:tenant" and the property "Key-Id"; everything
 * else with 400. Refusals are counted and logged, at most one line in ten seconds, without keys. */
#ifndef TG_NET_ZAP_H
#define TG_NET_ZAP_H

#include "common/base/status.h"
#include "common/net/allow.h"

#include <stdint.h>

typedef struct tg_zap tg_zap;

#define TG_ZAP_DOMAIN "textgen"
#define TG_ZAP_KEY_ID "Key-Id" /* 16 hex digits */

/* ctx is a ZeroMQ context; allow is borrowed until tg_zap_join. */
tg_status tg_zap_start(tg_zap **out, void *ctx, tg_allow *allow, tg_error *err) TG_MUST_CHECK;
/* After the context was terminated. */
void tg_zap_join(tg_zap **zap);
/* Connections let in and refused since the start; any thread. */
void tg_zap_counts(const tg_zap *zap, uint64_t *accepted, uint64_t *refused);

#endif
