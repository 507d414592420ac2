/* Tables of positions, made on the host: angles of rotary positions, the slopes of ALiBi, waves, and buckets of distances. */
#ifndef TG_NN_POSITIONS_H
#define TG_NN_POSITIONS_H

#include "common/nn/arch.h"

/* rows (n, rope->dims): for each of n positions from `first` on, in a text of `length` tokens, the cosines of its dims / 2 angles, then the
 * sines (op/rope.h). */
void tg_rope_rows(const tg_rope *rope, int length, int first, int n, float *rows);
/* table (positions, rope->dims): the same of every position when its token is the last of the text so far, as in decoding; where angles
 * depend on the length, texts longer than the original positions have others once they are read as a whole. */
void tg_rope_table(const tg_rope *rope, int positions, float *table);
/* slopes (heads), as in Press et al. 2021 for any number of heads. */
void tg_alibi_slopes(int heads, float *slopes);
/* table (positions, width): sines of the falling frequencies of Vaswani et al. 2017, then their cosines. */
void tg_waves_table(int positions, int width, float *table);
/* out (2 reach + 1): at reach + d the bucket (Raffel et al. 2020) of a key that lies d rows before its query. Half of the buckets are for single
 * distances, the others for runs that grow to max_distance; when `both`, the second half of them all is for keys behind the query. */
void tg_rel_buckets(int buckets, int max_distance, bool both, int reach, int32_t *out);

#endif
