/* Weights that are not finite: a damaged file, or training that failed. Found when a model is loaded or checked, by name, rather than in
 * whatever is computed with them. */
#ifndef TG_NN_FINITE_H
#define TG_NN_FINITE_H

#include "common/nn/params.h"
#include "common/nn/stored.h"
#include "common/nn/weights.h"

/* n floats (aligned to nothing): the elements from `begin` on of a tensor that is parameter p, in the file `path`. TG_DATA with the first
 * that is not finite. The output's bias may be -inf, which forbids a token. */
tg_status tg_finite_check(const char *path, const tg_st_tensor *t, const tg_param *p, size_t begin,
                          const void *floats, size_t n, tg_error *err) TG_MUST_CHECK;
/* Reads every tensor of the folder once, by all threads. */
tg_status tg_weights_finite(const tg_weights *w, const tg_params *params,
                            tg_error *err) TG_MUST_CHECK;

#endif
