/* The figures of a process's connections, as /metrics shows them: the same names in every program. */
#ifndef TG_NET_NET_FIGURES_H
#define TG_NET_NET_FIGURES_H

#include "common/net/link.h"
#include "common/net/stats.h"

typedef struct tg_net_figures {
    tg_stat *sent, *received, *sent_bytes, *received_bytes;
    tg_stat *bad_frames, *bad_handshakes, *bad_version, *bad_session, *bad_method, *no_hello;
    tg_stat *denied, *lost, *opened, *refused, *resumed, *expired, *detached, *credits;
    tg_stat *pressure[TG_PRESSURES], *missed[TG_ROLE_REWARD + 1], *errors[TG_CODE_COUNT];
    tg_answer_figures answers;
} tg_net_figures;

void tg_net_figures_init(tg_net_figures *f, tg_stats *stats);
/* links: of one link, or the sum over all of the process; answers: to the requests of its clients, NULL: it has none;
 * denied: keys that were refused. */
void tg_net_figures_set(tg_net_figures *f, const tg_link_stats *links, const tg_answers *answers,
                        uint64_t denied);

#endif
