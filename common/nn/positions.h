/* Tables of positions, made on the host: angles of rotary positions and the slopes of ALiBi. */
#ifndef TG_NN_POSITIONS_H
#define TG_NN_POSITIONS_H

#include "common/nn/arch.h"

/* table (positions, rope->dims): for each position the cosines of its dims / 2 angles, then the sines (op/rope.h). */
void tg_rope_table(const tg_rope *rope, int positions, float *table);
/* slopes (heads), as in Press et al. 2021 for any number of heads. */
void tg_alibi_slopes(int heads, float *slopes);

#endif
