/* The JSON header of a safetensors file, read by a strict parser that allocates one entry per
 * tensor and its name. */
#ifndef TG_NN_ST_HEADER_H
#define TG_NN_ST_HEADER_H

#include "common/nn/safetensors.h"

/* Fills tensors (names owned by it, data = blob + begin offset) from header text; the offsets are
 * within 0 .. blob_len, not yet compared with each other. On failure tensors made so far are left
 * to tg_safetensors_close. */
tg_status tg_st_header_parse(tg_safetensors *st, const char *file, const char *text, size_t len,
                             const unsigned char *blob, size_t blob_len,
                             tg_error *err) TG_MUST_CHECK;

#endif
