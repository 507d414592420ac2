/* The part of rope_parameters that says how angles are stretched to longer texts. Private to rope_config.c and rope_scaling.c. */
#ifndef TG_NN_FAMILY_ROPE_SCALING_H
#define TG_NN_FAMILY_ROPE_SCALING_H

#include "common/nn/family/decoders.h"

const char *tg_rope_kind_name(tg_rope_kind kind);
/* The rest of a->rope, whose dims are known, from the object `sub`; `top` may have original_max_position_embeddings for it; `part` of each
 * head is turned. dims may become all of a head. */
tg_status tg_rope_scaling_read(tg_arch *a, const tg_config_json *sub, const tg_config_json *top,
                               double part, tg_error *err) TG_MUST_CHECK;
/* An object that reads as r again; new reference. NULL: out of memory. */
json_t *tg_rope_scaling_object(const tg_arch *a, const tg_rope *r);

#endif
