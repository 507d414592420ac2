/* The weight files of a model folder, matched against a parameter table before anything large is
 * allocated. */
#ifndef TG_NN_WEIGHTS_H
#define TG_NN_WEIGHTS_H

#include "common/nn/backend.h"
#include "common/nn/family/family.h"
#include "common/nn/params.h"
#include "common/nn/tensor_set.h"

typedef struct tg_weights {
    tg_tensor_set set;
    /* one per parameter; NULL only for a value head or a fixed tensor the folder does not have */
    const tg_st_tensor **found;
    size_t *found_in; /* which file */
} tg_weights;

/* Opens and matches every tensor; TG_DATA naming tensor, expected and found. */
tg_status tg_weights_open(tg_weights *w, const char *folder, const tg_arch *arch,
                          const tg_params *params, tg_error *err) TG_MUST_CHECK;
/* The same with the weights in one file of that name, value head included. */
tg_status tg_weights_open_file(tg_weights *w, const char *folder, const char *name,
                               const tg_arch *arch, const tg_params *params,
                               tg_error *err) TG_MUST_CHECK;
void tg_weights_close(tg_weights *w);
/* TG_DATA naming a tensor whose bytes are damaged, where the file can tell (stored.h). Those who read and upload do it as they begin a
 * tensor. */
tg_status tg_weights_intact(const tg_weights *w, const tg_params *params,
                            tg_error *err) TG_MUST_CHECK;
/* Elements begin .. begin + count - 1 of parameter i as another type; a tg_param_source (model_files.h), arg is the tg_weights. */
tg_status tg_weights_read(void *w, size_t i, size_t begin, size_t count, tg_dtype as, void *out,
                          tg_error *err) TG_MUST_CHECK;
/* Whether the folder's output matrix is its token embeddings: it has only one of them, or both of the same numbers. *tied stays as it is
 * when there are no weights. */
tg_status tg_weights_tied(const char *folder, const tg_family *family, bool *tied,
                          tg_error *err) TG_MUST_CHECK;
/* Whether the folder's files hold a pooler's matrix. */
tg_status tg_weights_pooler(const char *folder, const tg_family *family, bool *pooler,
                            tg_error *err) TG_MUST_CHECK;
/* Copies tensor i, which is parameter p, to the device, converting to f32; found[i] is not NULL. TG_DATA when it is not finite. */
tg_status tg_weights_upload(const tg_weights *w, size_t i, const tg_param *p, tg_backend *be,
                            float *device, tg_error *err) TG_MUST_CHECK;
/* Gives back the pages of elements that were read and will not be again; of a strided tensor, whose elements lie anywhere, when the
 * last one was. */
void tg_weights_release(const tg_weights *w, size_t i, size_t begin, size_t count);

#endif
