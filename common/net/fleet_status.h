/* A fleet for those who watch it: members of /status, figures of /metrics. */
#ifndef TG_NET_FLEET_STATUS_H
#define TG_NET_FLEET_STATUS_H

#include "common/net/fleet.h"
#include "common/net/stats.h"

typedef struct tg_fleet_figures {
    tg_stat *workers, *reward_workers, *deaths, *rebuilt, *aborted, *dropped, *resent, *steps,
        *slots, *open, *calls;
    tg_stat *sent, *received;
} tg_fleet_figures;

void tg_fleet_figures_init(tg_fleet_figures *f, tg_stats *stats);
void tg_fleet_figures_set(const tg_fleet_figures *f, const tg_fleet_stats *st);
/* Slots, rates, losses and the list of workers, each member beginning with ", ". On the loop's thread, or under the
 * owner's lock. */
void tg_fleet_put_status(const tg_fleet *fleet, tg_buf *json);

#endif
