/* A model: architecture, parameters and (when trained) gradients on one backend.
 *
 *     tg_model *m;
 *     tg_model_open(&m, be, "models/tiny", TG_MODEL_TRAINABLE, seed, err);   // a Hugging Face folder
 *     ... tg_pass (pass.h) for training and scoring, tg_decoder (decoder.h) for generation ...
 *     tg_model_save(m, "out", err);                                          // a folder that transformers opens
 *     tg_model_destroy(&m);
 *
 * The backend is borrowed and must outlive the model. */
#ifndef TG_NN_MODEL_H
#define TG_NN_MODEL_H

#include "common/base/status.h"
#include "common/nn/arch.h"
#include "common/nn/backend.h"
#include "common/nn/model_files.h"
#include "common/nn/params.h"

#include <stdint.h>

typedef struct tg_model {
    /* read-only */
    tg_backend *be;
    unsigned flags; /* as opened */
    tg_arch arch;
    tg_params params;
    float *data; /* (params.total) on the device */
    /* (params.grad_total); NULL when not trainable. Passes accumulate into it; the optimizer clears it */
    float *grad;
    bool grad_rests;  /* it is zeros without memory: see tg_model_rest_grad */
    char *folder;     /* where it came from, or NULL */
    bool resting;     /* data holds zeros: see tg_model_rest */
    void *half;       /* the matrices as bf16, after tg_model_halve; else NULL */
    uint64_t version; /* grows when weights change: who writes to data calls tg_model_changed */
    /* private: config.json and generation_config.json as they were in the folder, kept for save;
     * NULL: none */
    char *config_text, *generation_text;
    uint32_t digest; /* of the parameters, once it has rested */
    bool digested;
} tg_model;

enum {
    TG_MODEL_TRAINABLE = 1,
    /* adds value_head.weight, initialised from `seed` unless the folder has it */
    TG_MODEL_VALUE_HEAD = 2,
    /* passes over it round both operands of a layer's and the output matrix's products to bf16, in backward too; sums and all
     * else are f32 */
    TG_MODEL_ROUNDED = 4,
    TG_MODEL_UNFROZEN_SHIFT = 8,
};
/* Trainable, but only the last n layers, the norm behind them and the heads (tg_params_freeze). */
#define TG_MODEL_TRAIN_LAST(n) (TG_MODEL_TRAINABLE | ((unsigned)(n) + 1) << TG_MODEL_UNFROZEN_SHIFT)

/* Weights: model.safetensors, or the shards of model.safetensors.index.json, or pytorch_model.bin or its shards; the value head:
 * value_head.safetensors. A tensor that is missing, unknown or of another shape is TG_DATA naming
 * it, what was expected and what was found. */

tg_status tg_model_open(tg_model **out, tg_backend *be, const char *folder, unsigned flags,
                        uint64_t seed, tg_error *err) TG_MUST_CHECK;
/* Only the first n_layers layers (1 to all) of a model that is neither trained nor saved: the others are not read. */
tg_status tg_model_open_first(tg_model **out, tg_backend *be, const char *folder, int n_layers,
                              tg_error *err) TG_MUST_CHECK;
/* Whether tg_model_open would find every weight of that architecture in the folder, all of them finite;
 * they are read once, nothing is kept. */
tg_status tg_model_check(const char *folder, const tg_arch *arch, tg_error *err) TG_MUST_CHECK;
/* A fresh model: GPT-2's initialisation (normal 0.02, residual projections scaled by 1/sqrt(2
 * n_layers)). arch->value_head is replaced by the flag. */
tg_status tg_model_create(tg_model **out, tg_backend *be, const tg_arch *arch, unsigned flags,
                          uint64_t seed, tg_error *err) TG_MUST_CHECK;
/* Same architecture and weights (minus what flags leave out), own storage. `from` neither rests nor is halved; so too for tg_model_save. */
tg_status tg_model_clone(tg_model **out, const tg_model *from, unsigned flags, uint64_t seed,
                         tg_error *err) TG_MUST_CHECK;
void tg_model_destroy(tg_model **m);

/* Gives the memory of the parameters back until tg_model_wake reads them again from the folder; for a model without gradients whose
 * parameters are its folder's. TG_DATA: the folder's weights are no longer what they were at the first rest. Both do nothing where
 * there is nothing to do. */
tg_status tg_model_rest(tg_model *m, tg_error *err) TG_MUST_CHECK;
tg_status tg_model_wake(tg_model *m, tg_error *err) TG_MUST_CHECK;
/* Between updates gradients are zero and need no memory: a model begins so. Who is about to write to them wakes them, as passes in
 * backward do; an optimizer only leaves zeros there. */
void tg_model_rest_grad(tg_model *m);
tg_status tg_model_wake_grad(tg_model *m, tg_error *err) TG_MUST_CHECK;
/* Rounds the matrices of a model that is not trained to bf16 and gives back the memory they had: passes then multiply with those, in
 * f32. They cannot be read as f32, saved or decoded with any more. An encoder's, and those that only a source meets, stay f32. */
tg_status tg_model_halve(tg_model *m, tg_error *err) TG_MUST_CHECK;
/* Bytes that a halved model takes: for the memory plan. */
size_t tg_model_half_bytes(const tg_arch *arch);

/* The table of a model opened with these flags. */
tg_status tg_model_params(tg_params *p, const tg_arch *arch, unsigned flags,
                          tg_error *err) TG_MUST_CHECK;
/* Bytes of device memory that a model takes: parameters, and gradients with TG_MODEL_TRAINABLE; for
 * the memory plan. 0: arch is not valid. */
size_t tg_model_bytes(const tg_arch *arch, unsigned flags);

/* config.json, generation_config.json, model.safetensors (above 5 GB: shards and their index; without the value head,
 * which goes to value_head.safetensors). The tokenizer is saved by its owner. A folder appears whole; in one that
 * exists the model is replaced whole, and files that are no model's stay (tg_model_write_folder). */
tg_status tg_model_save(const tg_model *m, const char *folder, tg_error *err) TG_MUST_CHECK;
/* The same as bf16 or f16, or in shards of another size. */
tg_status tg_model_save_as(const tg_model *m, const char *folder, tg_save_opts opts,
                           tg_error *err) TG_MUST_CHECK;

/* One tensor to or from host memory, `count` floats; TG_DATA when the name is unknown or the count
 * differs. */
tg_status tg_model_get(const tg_model *m, const char *name, float *out, size_t count,
                       tg_error *err) TG_MUST_CHECK;
tg_status tg_model_get_grad(const tg_model *m, const char *name, float *out, size_t count,
                            tg_error *err) TG_MUST_CHECK;
tg_status tg_model_set(tg_model *m, const char *name, const float *values, size_t count,
                       tg_error *err) TG_MUST_CHECK;
/* Who writes to m->data says so here. */
static inline void tg_model_changed(tg_model *m) {
    m->version++;
}

#endif
