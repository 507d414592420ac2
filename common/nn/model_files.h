/* Writing a model folder, piece by piece: settings (model_settings.c), weights as one file or as shards with an index
 * (model_shards.c), and the folder around them (model_folder.c). Where the numbers come from is the caller's: a device
 * (model_save.c), or another folder (textgen export). */
#ifndef TG_NN_MODEL_FILES_H
#define TG_NN_MODEL_FILES_H

#include "common/nn/arch.h"
#include "common/nn/params.h"
#include "common/nn/safetensors.h"

typedef struct tg_save_opts {
    tg_dtype dtype;     /* F32 (0), BF16 or F16 */
    size_t shard_bytes; /* no file is larger, unless one tensor is; 0: TG_SHARD_BYTES */
} tg_save_opts;

#define TG_SHARD_BYTES ((size_t)5000000000) /* 5 GB, as transformers has it */

/* Gives elements begin .. begin + count - 1 of parameter `index` as opts.dtype. */
typedef tg_status tg_param_source(void *arg, size_t index, size_t begin, size_t count, tg_dtype as,
                                  void *out, tg_error *err);

/* config.json: `text` (the config.json it came from, or NULL) with the architecture's settings. */
tg_status tg_model_write_config(const char *folder, const tg_arch *arch, const char *text,
                                tg_dtype dtype, tg_error *err) TG_MUST_CHECK;
/* generation_config.json: the text it came from; or what config_text (NULL: none) says of generation, and the special tokens; none for an
 * encoder that had none. */
tg_status tg_model_write_generation(const char *folder, const tg_arch *arch, const char *text,
                                    const char *config_text, tg_error *err) TG_MUST_CHECK;
/* model.safetensors, or model-0000i-of-0000n.safetensors and model.safetensors.index.json; the value head goes to
 * value_head.safetensors. Each file appears complete or not at all. The folder has no other weights: see tg_model_write_folder. */
tg_status tg_model_write_weights(const char *folder, const tg_params *params, tg_save_opts opts,
                                 tg_param_source *source, void *arg, tg_error *err) TG_MUST_CHECK;
/* How many files the weights (without the value head) will be. */
size_t tg_model_count_shards(const tg_params *params, tg_save_opts opts);

/* Writes all files of a model to an empty folder. */
typedef tg_status tg_folder_writer(void *arg, const char *folder, tg_error *err);

/* Runs `write` on a new folder beside it, which is then renamed; when the folder exists, on a new folder inside it,
 * whose files then take the places of the old ones, and the old weights go: until all are on disk the old model stays, and
 * never are there halves of two. Files that are no model's stay. */
tg_status tg_model_write_folder(const char *folder, tg_folder_writer *write, void *arg,
                                tg_error *err) TG_MUST_CHECK;

#endif
