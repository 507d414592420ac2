/* The arithmetic of the algorithms on JSON values, for comparison with other implementations.
 *
 *   {"op": "gae", "reward", "value", "start", "last_value", "last_done", "gamma", "gae_lambda"}  ->
 * {"advantages", "returns"}
 *   {"op": "ppo", "logp_old", "value_old", "adv", "ret", "logp", "entropy", "value", "clip_range",
 * "clip_range_vf", "ent_coef", "vf_coef", "normalize_advantage"}  ->  {"policy_loss", "value_loss",
 * "entropy_loss", "loss", "approx_kl", "clip_fraction", "explained_variance", "advantages_used",
 * "dlogp", "dentropy", "dvalue"}
 *   {"op": "a2c", …}: as "ppo", without the clip ranges
 *   {"op": "cg", "matrix", "b", "x", "max_steps"}  ->  {"x"}
 *   {"op": "adamw", "backend", "param", "grads" (one list a step), "lr", "betas", "eps",
 * "weight_decay", "max_grad_norm"}
 *    ->  {"param", "norms"} */
#ifndef TG_TEST_RL_EVAL_H
#define TG_TEST_RL_EVAL_H

#include "common/base/status.h"

#include <jansson.h>

/* *out is a new reference. */
tg_status tg_rl_eval(const json_t *request, json_t **out, tg_error *err) TG_MUST_CHECK;

#endif
