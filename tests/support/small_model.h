/* A GPT-2 of a few hundred weights for the tests of model folders. */
#ifndef TG_TEST_SMALL_MODEL_H
#define TG_TEST_SMALL_MODEL_H

#include "common/nn/model.h"

#include <stdbool.h>

tg_arch tg_small_arch(void);
tg_backend *tg_small_backend(void); /* ref, one thread */
const char *
tg_small_path(const char *name);            /* in the test's own folder; the last four stay valid */
float *tg_small_weights(const tg_model *m); /* (params.total), to be freed */
bool tg_small_same(const tg_model *a, const tg_model *b); /* bit by bit */

#endif
