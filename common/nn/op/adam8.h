/* The step of op/adamw.h with both moments kept in 8 bits: a code for each element, and the largest magnitude of every block of
 * TG_QUANT8_BLOCK elements (common/nn/quant8.h). Blocks start at the first element; the last may be shorter.
 *
 * In each block: moments are read (value of the code times largest), stepped and used in f32 exactly as adamw does, then written back with
 * the block's new largest magnitude. m: signed codes; v: unsigned ones.
 * largest: (ceil(n / TG_QUANT8_BLOCK)). State that is all zeros stands for moments of zero. */
#ifndef TG_NN_OP_ADAM8_H
#define TG_NN_OP_ADAM8_H

#include "common/nn/op/adamw.h"
#include "common/nn/quant8.h"

typedef struct tg_quant8_state {
    uint8_t *code;
    float *largest;
} tg_quant8_state;

typedef void tg_op_adam8(struct tg_backend *be, float *param, float *grad, const tg_quant8_state *m,
                         const tg_quant8_state *v, size_t n, const tg_adamw_step *step);

#endif
