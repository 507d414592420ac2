/* The parameter table: one list gives names, shapes, offsets, checkpoints and tests.
 *
 * Parameters, gradients and each optimizer moment are one block of `total` floats with the same layout, so an element has
 * the same offset in all of them. Entries are aligned to 16 floats; the gaps stay zero. */
#ifndef TG_NN_PARAMS_H
#define TG_NN_PARAMS_H

#include "common/base/status.h"
#include "common/nn/arch.h"

#include <stdbool.h>
#include <stddef.h>

enum { TG_PARAM_NAME_MAX = 96 };

typedef struct tg_param {
    char name[TG_PARAM_NAME_MAX]; /* Hugging Face name: "transformer.h.0.ln_1.weight" */
    int ndim;
    int shape[4];
    size_t count;  /* product of the shape */
    size_t offset; /* in floats */
} tg_param;

typedef struct tg_params {
    tg_param *list;
    size_t n;
    size_t total; /* floats, with the gaps */
} tg_params;

/* Built by the family from the architecture. */
tg_status tg_params_init(tg_params *p, const tg_arch *arch, tg_error *err) TG_MUST_CHECK;
void tg_params_fini(tg_params *p);
const tg_param *tg_params_find(const tg_params *p, const char *name); /* NULL: none */

#endif
