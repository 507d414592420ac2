/* The operations of ops.h for a process whose main thread computes: a loop in a thread of its own. Hooks run on
 * that thread, except `make`; figures may be updated from any.
 *
 *     tg_ops_thread_start(&t, &opts, &hooks, err);
 *     tg_ops_thread_stop(&t);                        // no hook is called after this */
#ifndef TG_NET_OPS_THREAD_H
#define TG_NET_OPS_THREAD_H

#include "common/net/ops.h"

typedef struct tg_ops_thread tg_ops_thread;

tg_status tg_ops_thread_start(tg_ops_thread **out, const tg_ops_opts *opts,
                              const tg_ops_hooks *hooks, tg_error *err) TG_MUST_CHECK;
void tg_ops_thread_stop(tg_ops_thread **t);

#endif
