/* What a model folder holds, for people: sizes, types and where the parameters are. */
#ifndef TG_NN_MODEL_SUMMARY_H
#define TG_NN_MODEL_SUMMARY_H

#include "common/base/buf.h"
#include "common/nn/weights.h"

/* Appends a table. The weights were matched with that architecture. */
void tg_model_summary(tg_buf *out, const tg_arch *arch, const tg_params *params,
                      const tg_weights *w);

#endif
