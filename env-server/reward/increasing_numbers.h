/* How much of a text is a run of increasing numbers. Used by the reward and by the metric of this
 * name. */
#ifndef TG_ENV_INCREASING_NUMBERS_H
#define TG_ENV_INCREASING_NUMBERS_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Length of the strictly increasing run at the start of the text's numbers, divided by the larger
 * of the number of words and min_tokens / 2; 0 without any number. */
tg_status tg_increasing_numbers(const char *text, size_t len, int64_t min_tokens, double *out,
                                tg_error *err) TG_MUST_CHECK;

#endif
