/* Copies of results that outlive the message they came in. Everything a copy points to lies in one buffer, which is
 * used again for the next copy. */
#ifndef TG_NET_RESULT_H
#define TG_NET_RESULT_H

#include "common/base/buf.h"
#include "proto/messages.h"

#include <stdbool.h>

/* False: out of memory; then *to is a result with code INTERNAL that says so. bytes must live as long as *to. */
bool tg_reset_result_copy(tg_reset_result *to, tg_buf *bytes, const tg_reset_result *from);
bool tg_step_result_copy(tg_step_result *to, tg_buf *bytes, const tg_step_result *from);

/* A reply with the prompts or logs of episodes goes on in another one (MORE) when it has so much. */
enum { TG_EPISODES_BYTES = 4 << 20, TG_EPISODES_MAX = 1024 };
size_t tg_snapshot_bytes(const tg_snapshot *x); /* on the wire, about */
size_t tg_restore_result_bytes(const tg_restore_result *x);

#endif
