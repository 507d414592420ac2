/* What a worker counts about its work, for /metrics and `textgen top`. */
#ifndef TG_ENV_FIGURES_H
#define TG_ENV_FIGURES_H

#include "common/net/net_figures.h"
#include "common/net/stats.h"
#include "proto/messages.h"

/* What the episode of a slot is doing. */
typedef enum tg_slot_phase {
    TG_PHASE_IDLE, /* there is none */
    TG_PHASE_RUNNING,
    TG_PHASE_DONE,       /* ended, the next one not begun */
    TG_PHASE_RECOVERING, /* rebuilt in one go here: only fleets have any */
    TG_SLOT_PHASES
} tg_slot_phase;

typedef struct tg_figures {
    tg_stats *stats; /* borrowed */
    tg_net_figures net;
    tg_stat *steps, *replayed, *terminated, *truncated, *recovered, *aborted;
    tg_stat *slots[TG_SLOT_PHASES], *capacity, *sessions, *queue, *oldest;
    size_t n_slots[TG_SLOT_PHASES];
    uint64_t n_steps, n_episodes;
} tg_figures;

void tg_figures_init(tg_figures *f, tg_stats *stats, const char *env_id);
/* A request of this type, which came at that time (tg_clock_ns), is answered. */
void tg_figures_request(tg_figures *f, tg_msg_type type, uint64_t start_ns);
/* An episode ended without its end. */
void tg_figures_aborted(tg_figures *f);
/* A reply is about to leave. */
void tg_figures_reply(tg_figures *f, tg_msg_type type, const void *msg);

#endif
