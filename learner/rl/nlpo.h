/* NLPO takes PPO's options (learner/rl/ppo.h); what it masks is set with the policy. */
#ifndef TG_RL_NLPO_H
#define TG_RL_NLPO_H

#include "learner/rl/algo.h"

extern const tg_algo_ops tg_algo_nlpo;

#endif
