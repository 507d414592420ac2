/* What a tensor holds before training. */
#ifndef TG_NN_MODEL_INIT_H
#define TG_NN_MODEL_INIT_H

#include "common/nn/model.h"

/* Fills parameter p of the model as its table says (tg_param.init). Its numbers depend on the seed and its name alone, not on
 * what else the model has. */
tg_status tg_model_init_param(tg_model *m, const tg_param *p, uint64_t seed,
                              tg_error *err) TG_MUST_CHECK;

#endif
