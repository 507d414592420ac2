/* A fleet for those who watch it: members of /status, figures of /metrics. */
#ifndef TG_NET_FLEET_STATUS_H
#define TG_NET_FLEET_STATUS_H

#include "common/net/fleet.h"
#include "common/net/stats.h"

typedef struct tg_fleet_figures {
    tg_stat *workers, *reward_workers, *deaths[TG_LOSSES], *rebuilt, *aborted, *dropped, *resent,
        *steps, *episodes, *open, *unplaced, *calls;
    tg_stat *states[TG_FLEET_STATES], *recovery;
    tg_stat *sent, *received;
    tg_answer_figures answers; /* of the workers */
} tg_fleet_figures;

void tg_fleet_figures_init(tg_fleet_figures *f, tg_stats *stats);
/* On the loop's thread, or under the owner's lock. */
void tg_fleet_figures_set(tg_fleet_figures *f, const tg_fleet *fleet);
/* Slots, rates, losses and the list of workers, each member beginning with ", ". On the loop's thread, or under the
 * owner's lock. */
void tg_fleet_put_status(const tg_fleet *fleet, tg_buf *json);

#endif
