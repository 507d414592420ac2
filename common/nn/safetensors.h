/* safetensors files: read by mapping, written atomically.
 *
 * Reading validates everything before use: header size, JSON, dtypes, shapes, offsets inside the
 * file, no overlap, no gap, no name twice. A bad file is TG_DATA naming file, tensor and what is
 * wrong; nothing is allocated beyond the header. */
#ifndef TG_NN_SAFETENSORS_H
#define TG_NN_SAFETENSORS_H

#include "common/base/status.h"
#include "common/nn/stored.h"

#include <stddef.h>

typedef tg_tensor_file tg_safetensors;

tg_status tg_safetensors_open(tg_safetensors *st, const char *path, tg_error *err) TG_MUST_CHECK;
/* The same on bytes in memory, which are borrowed until close; `name` stands for the file in
 * messages. */
tg_status tg_safetensors_open_memory(tg_safetensors *st, const char *name, const void *bytes,
                                     size_t len, tg_error *err) TG_MUST_CHECK;
void tg_safetensors_close(tg_safetensors *st);
const tg_st_tensor *tg_safetensors_find(const tg_safetensors *st,
                                        const char *name); /* NULL: none */
/* Writing: tensors in the given order, any type; the file appears complete or not at all. */
typedef struct tg_st_write {
    const char *name;
    tg_dtype dtype;
    int ndim;
    int64_t shape[TG_ST_MAX_DIMS];
    const void *data; /* NULL: asked of the source, piece by piece */
} tg_st_write;

/* Fills out with `bytes` bytes of tensor `index` from byte `begin` on. */
typedef tg_status tg_st_source(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                               tg_error *err);

/* metadata: JSON object text for "__metadata__" or NULL. */
tg_status tg_safetensors_write(const char *path, const tg_st_write *tensors, size_t n,
                               const char *metadata, tg_error *err) TG_MUST_CHECK;
/* As above, for tensors that are not in host memory. */
tg_status tg_safetensors_write_from(const char *path, const tg_st_write *tensors, size_t n,
                                    const char *metadata, tg_st_source *source, void *arg,
                                    tg_error *err) TG_MUST_CHECK;

#endif
