/* Pieces to begin with (inside of unigram_train.c). */
#ifndef TG_TEXT_UNIGRAM_SEED_H
#define TG_TEXT_UNIGRAM_SEED_H

#include "common/base/map.h"
#include "common/base/status.h"

#include <stdint.h>

typedef struct tg_piece {
    const char *text; /* borrowed from the words */
    uint32_t len;     /* bytes */
    uint32_t chars;
    double score; /* as seeds: how often times how long; later log probability */
} tg_piece;

/* Every character of the words (text -> count), then the substrings of 2 .. max_chars characters that occur at least
 * twice and are followed by different characters, the highest score first, max_seeds in all. *out is owned. */
tg_status tg_unigram_seeds(const tg_map *words, size_t max_chars, size_t max_seeds, tg_piece **out,
                           size_t *n, tg_error *err) TG_MUST_CHECK;

#endif
