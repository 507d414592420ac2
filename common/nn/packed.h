/* A trunk's matrices once more, in the form in which the backend reads them best, or in half the bytes: for decoding, where each is
 * read whole for every token. Keys and values of a source keep the plain form, which is used once.
 *
 *     tg_carve_packed(&carve, &trunk, form);      // places, with the rest of a block
 *     tg_packed_fill(&trunk);                     // now, and whenever the weights have changed
 *
 * Private to common/nn. */
#ifndef TG_NN_PACKED_H
#define TG_NN_PACKED_H

#include "common/nn/trunk.h"

/* t->layers NULL: only the size is found. Nothing when the form is PLAIN. */
void tg_carve_packed(tg_carve *c, const tg_arch *arch, tg_trunk *t, tg_weight_form form);
void tg_packed_fill(const tg_trunk *t);
/* Finds the matrices of a halved model (tg_model_halve). */
void tg_packed_half(tg_trunk *t, void *half);

#endif
