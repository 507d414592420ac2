/* What a worker counts about its work, for /metrics and `textgen top`. */
#ifndef TG_ENV_FIGURES_H
#define TG_ENV_FIGURES_H

#include "common/net/net_figures.h"
#include "common/net/stats.h"
#include "proto/messages.h"

enum { TG_FIGURES_TYPES = 64 };

typedef struct tg_figures {
    tg_stats *stats; /* borrowed */
    tg_net_figures net;
    tg_stat *steps, *replayed, *terminated, *truncated, *slots, *capacity, *sessions, *queue,
        *oldest;
    tg_stat *rewards[TG_REWARD_INVALID + 1];
    tg_stat *durations[TG_FIGURES_TYPES]; /* by message type; made when first seen */
    uint64_t n_steps, n_episodes;
} tg_figures;

void tg_figures_init(tg_figures *f, tg_stats *stats, const char *env_id);
/* A request of this type was handled on the loop in so many seconds. */
void tg_figures_request(tg_figures *f, tg_msg_type type, double seconds);
/* A reply is about to leave. */
void tg_figures_reply(tg_figures *f, tg_msg_type type, const void *msg);

#endif
