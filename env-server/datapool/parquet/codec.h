/* Unpacking of page bytes. */
#ifndef TG_ENV_PARQUET_CODEC_H
#define TG_ENV_PARQUET_CODEC_H

#include "common/base/status.h"

#include <stddef.h>

/* Fills exactly out_len bytes. TG_DATA: broken or of another length; TG_UNSUPPORTED: a codec that is
 * not built in, with the fix. */
tg_status tg_pq_unpack(int codec, const unsigned char *in, size_t in_len, unsigned char *out,
                       size_t out_len, tg_error *err) TG_MUST_CHECK;

#endif
