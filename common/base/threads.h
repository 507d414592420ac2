/* A fixed team of threads for data-parallel loops. The caller's thread is one of them.
 *
 *     tg_team *team;  tg_team_create(&team, 2, err);
 *     tg_team_run(team, n_tiles, work, arg);      // calls work(arg, i) for i in [0, n_tiles), returns when all are done
 *     tg_team_destroy(&team);
 *
 * Tiles are handed out dynamically, so `work` must write only what belongs to its tile: then results do not depend
 * on the number of threads. A team is used from one thread at a time; run() must not be nested. */
#ifndef TG_BASE_THREADS_H
#define TG_BASE_THREADS_H

#include "common/base/status.h"

typedef struct tg_team tg_team;
typedef void tg_team_fn(void *arg, int tile);

int tg_team_cpus(void); /* that the process may run on (sched_getaffinity) */
/* n_threads 0: tg_team_cpus. */
tg_status tg_team_create(tg_team **out, int n_threads, tg_error *err) TG_MUST_CHECK;
void tg_team_destroy(tg_team **team);
int tg_team_size(const tg_team *team);
void tg_team_run(tg_team *team, int n_tiles, tg_team_fn *work, void *arg);
/* For a tile that waits a moment for what another one does: round 0, 1, ... of the loop that looks. The other one must not wait itself. */
void tg_team_relax(int round);

#endif
