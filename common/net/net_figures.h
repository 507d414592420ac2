/* The figures of a process's connections, as /metrics shows them: the same names in every program. */
#ifndef TG_NET_NET_FIGURES_H
#define TG_NET_NET_FIGURES_H

#include "common/net/link.h"
#include "common/net/stats.h"

typedef struct tg_net_figures {
    tg_stat *sent, *received, *sent_bytes, *received_bytes;
    tg_stat *bad_frames, *bad_handshakes, *denied, *lost, *opened, *refused;
    tg_stat *resumed, *expired, *detached, *overloaded, *errors[TG_CODE_COUNT];
} tg_net_figures;

void tg_net_figures_init(tg_net_figures *f, tg_stats *stats);
/* link: of one link, or the sum over several. net may be NULL. */
void tg_net_figures_set(const tg_net_figures *f, const tg_net *net, const tg_link_stats *link);

#endif
