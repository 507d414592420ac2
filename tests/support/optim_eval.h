/* One optimizer on one array, from JSON: for goldens and live comparison with torch. */
#ifndef TG_TESTS_OPTIM_EVAL_H
#define TG_TESTS_OPTIM_EVAL_H

#include "common/base/status.h"

#include <jansson.h>

/* {"kind", "backend", "param": […], "grads": [[…], …], "lr", "betas", "eps", "weight_decay", "alpha", "momentum", "dampening",
 * "centered", "nesterov", "max_grad_norm"} -> {"param", "state": [[…], …]}; 8-bit state as the numbers it stands for. */
tg_status tg_optim_eval(const json_t *in, json_t *out, tg_error *err) TG_MUST_CHECK;

#endif
