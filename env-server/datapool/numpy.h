/* numpy's random permutations, which decide what `datasets` calls a shuffled data set.
 *
 * datasets' shuffle(seed) is numpy.random.default_rng(seed).permutation(n); without a seed it takes
 * a word of the global RandomState as the seed. */
#ifndef TG_ENV_NUMPY_H
#define TG_ENV_NUMPY_H

#include "common/base/status.h"

#include <stdint.h>

/* default_rng(seed).permutation(n); *out is owned (tg_free). */
tg_status tg_numpy_permutation(uint64_t seed, uint64_t n, uint64_t **out,
                               tg_error *err) TG_MUST_CHECK;
/* The seed of the (draw+1)-th shuffle without a seed after numpy.random.seed(seed); draw < 300. */
uint32_t tg_numpy_shuffle_seed(uint32_t seed, unsigned draw);

#endif
