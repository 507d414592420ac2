/* Model folders of any size with random weights, for tests that need one of a name and a family. */
#ifndef TG_TEST_MAKE_MODEL_H
#define TG_TEST_MAKE_MODEL_H

#include "common/base/status.h"

#include <stdint.h>

/* Writes `folder`: config.json (the text; vocab_size is set to the tokenizer's when it says 0), weights drawn from the seed and made larger by
 * `scale`, and the tokenizer of another folder. tokenizer_config: text of that file, NULL: as in that folder. */
tg_status tg_make_model(const char *folder, const char *config, const char *tokenizer,
                        const char *tokenizer_config, float scale, uint64_t seed,
                        tg_error *err) TG_MUST_CHECK;

#endif
