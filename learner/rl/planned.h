/* Algorithms that are known, with their options, but not built into this version. */
#ifndef TG_RL_PLANNED_H
#define TG_RL_PLANNED_H

#include "learner/rl/algo.h"

extern const tg_algo_ops tg_algo_trpo;

#endif
