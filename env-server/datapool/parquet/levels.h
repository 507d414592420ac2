/* Parquet's hybrid of runs and bit-packed groups: definition and repetition levels, dictionary
 * indices, truth values. */
#ifndef TG_ENV_PARQUET_LEVELS_H
#define TG_ENV_PARQUET_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads n numbers of `width` bits (0..32). False: the bytes end too early or a number is larger than
 * `largest`. */
bool tg_pq_hybrid(const unsigned char *in, size_t len, unsigned width, size_t n, uint32_t largest,
                  uint32_t *out);
/* The same for levels, which fit into a byte. */
bool tg_pq_levels(const unsigned char *in, size_t len, unsigned largest, size_t n, uint8_t *out);
/* The old encoding of levels: bit-packed from the high end. *used gets its bytes. */
bool tg_pq_levels_packed(const unsigned char *in, size_t len, unsigned largest, size_t n,
                         uint8_t *out, size_t *used);
unsigned tg_pq_bits(uint32_t largest); /* of a number up to it */

#endif
