/* The learner's operations port: its workers, its progress, SIGHUP, words to systemd.
 *
 *     tg_operations_open(&o, &opts, security, err);    // opens nothing without --http and systemd: still SIGHUP
 *     tg_operations_set_pool(o, pool);                 // NULL before the pool closes
 *     tg_operations_progress(o, iteration, total, reward, tokens_per_s);
 *     tg_operations_close(&o); */
#ifndef TG_TRAIN_OPERATIONS_H
#define TG_TRAIN_OPERATIONS_H

#include "common/net/ops_opts.h"
#include "common/net/pool.h"
#include "learner/track/track.h"

typedef struct tg_operations tg_operations;

/* security may be NULL and is borrowed. */
tg_status tg_operations_open(tg_operations **out, const tg_ops_opts *opts, tg_security *security,
                             tg_error *err) TG_MUST_CHECK;
void tg_operations_close(tg_operations **o);
/* The pool whose workers are shown; waits until nobody looks at the old one. o may be NULL. */
void tg_operations_set_pool(tg_operations *o, tg_pool *pool);
void tg_operations_progress(tg_operations *o, const tg_track_progress *p); /* o may be NULL */

#endif
