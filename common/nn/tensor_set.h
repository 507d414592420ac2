/* The weight files of a model folder: one, or the shards that an index names. */
#ifndef TG_NN_TENSOR_SET_H
#define TG_NN_TENSOR_SET_H

#include "common/nn/stored.h"

typedef struct tg_tensor_set {
    tg_tensor_file *files;
    char **paths;
    size_t n;
} tg_tensor_set;

/* What config.json names in transformers_weights; else model.safetensors, else the shards of model.safetensors.index.json, else
 * pytorch_model.bin, else the shards of pytorch_model.bin.index.json. TG_NOINPUT: none of them is there. */
tg_status tg_tensor_set_open(tg_tensor_set *s, const char *folder, tg_error *err) TG_MUST_CHECK;
/* One more file of the folder. */
tg_status tg_tensor_set_add(tg_tensor_set *s, const char *folder, const char *name,
                            tg_error *err) TG_MUST_CHECK;
void tg_tensor_set_close(tg_tensor_set *s);

/* The names by which the weights of a folder are found, in order of preference: files, and indexes of shards (.index.json). NULL ends
 * it. */
extern const char *const tg_weight_entries[];

/* Whether folder/name is there. */
bool tg_folder_has(const char *folder, const char *name);

#endif
