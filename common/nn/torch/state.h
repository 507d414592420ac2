/* The few Python objects of a saved state dict: storages, tensors over them, ordered dicts. The host of the
 * pickle machine. */
#ifndef TG_NN_TORCH_STATE_H
#define TG_NN_TORCH_STATE_H

#include "common/nn/stored.h"
#include "common/nn/torch/pickle.h"

enum { TG_TORCH_KEY_MAX = 250 }; /* bytes of a storage's key */

/* A storage, or a view of one (files of torch before 1.0). */
typedef struct tg_torch_storage {
    const char *key; /* in the file, key_len bytes */
    size_t key_len;
    tg_dtype dtype;
    int64_t count; /* elements of the whole storage */
    int64_t begin; /* of the view */
    /* filled in by torch_file.c when the storage was found; NULL: not yet */
    const unsigned char *data;
    size_t seal; /* as in tg_st_tensor */
} tg_torch_storage;

typedef struct tg_torch_tensor {
    size_t storage;
    int64_t offset; /* elements */
    int ndim;
    int64_t shape[TG_ST_MAX_DIMS], stride[TG_ST_MAX_DIMS];
} tg_torch_tensor;

enum { TG_TORCH_STORAGE = 1, TG_TORCH_TENSOR = 2 }; /* types of objects, tg_pickle_value.n */

typedef struct tg_torch_state {
    tg_torch_storage *storages;
    size_t n_storages, storages_cap;
    tg_torch_tensor *tensors;
    size_t n_tensors, tensors_cap;
} tg_torch_state;

/* The state is borrowed by the machine that gets this host. */
tg_pickle_host tg_torch_state_host(tg_torch_state *state);
void tg_torch_state_fini(tg_torch_state *state);

#endif
