/* A model: architecture, parameters and (when trained) gradients on one backend.
 *
 *     tg_model *m;
 *     tg_model_open(&m, be, "models/tiny", TG_MODEL_TRAINABLE, err);   // a Hugging Face folder
 *     ... tg_pass (pass.h) for training and scoring, tg_decoder (decoder.h) for generation ...
 *     tg_model_save(m, "out", err);                                    // a folder that transformers opens
 *     tg_model_destroy(&m);
 *
 * The backend is borrowed and must outlive the model. */
#ifndef TG_NN_MODEL_H
#define TG_NN_MODEL_H

#include "common/base/status.h"
#include "common/nn/arch.h"
#include "common/nn/backend.h"
#include "common/nn/params.h"

#include <stdint.h>

typedef struct tg_model {
    /* read-only */
    tg_backend *be;
    tg_arch arch;
    tg_params params;
    float *data; /* (params.total) on the device */
    float *grad; /* same layout; NULL when not trainable. Passes accumulate into it; adamw clears it */
    char *folder; /* where it came from, or NULL */
} tg_model;

enum {
    TG_MODEL_TRAINABLE = 1,
    TG_MODEL_VALUE_HEAD = 2, /* adds value_head.weight, initialised from `seed` unless the folder has it */
};

tg_status tg_model_open(tg_model **out, tg_backend *be, const char *folder, unsigned flags,
                        uint64_t seed, tg_error *err) TG_MUST_CHECK;
/* A fresh model: GPT-2's initialisation (normal 0.02, residual projections scaled by 1/sqrt(2 n_layers)). */
tg_status tg_model_create(tg_model **out, tg_backend *be, const tg_arch *arch, unsigned flags,
                          uint64_t seed, tg_error *err) TG_MUST_CHECK;
/* Same architecture and weights (minus what flags leave out), own storage. */
tg_status tg_model_clone(tg_model **out, const tg_model *from, unsigned flags, uint64_t seed,
                         tg_error *err) TG_MUST_CHECK;
void tg_model_destroy(tg_model **m);

/* The architecture of a folder, from its config.json alone: for checks and memory plans. */
tg_status tg_arch_load(tg_arch *arch, const char *folder, tg_error *err) TG_MUST_CHECK;

/* config.json, generation_config.json, model.safetensors (without the value head). The tokenizer is saved by its owner.
 * Atomic: written to folder + ".tmp" and renamed. */
tg_status tg_model_save(const tg_model *m, const char *folder, tg_error *err) TG_MUST_CHECK;

/* One tensor to or from host memory, `count` floats; TG_DATA when the name is unknown or the count differs. */
tg_status tg_model_get(const tg_model *m, const char *name, float *out, size_t count, tg_error *err) TG_MUST_CHECK;
tg_status tg_model_get_grad(const tg_model *m, const char *name, float *out, size_t count, tg_error *err) TG_MUST_CHECK;
tg_status tg_model_set(tg_model *m, const char *name, const float *values, size_t count, tg_error *err) TG_MUST_CHECK;

#endif
