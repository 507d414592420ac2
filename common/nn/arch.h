/* A model's architecture as data: what its family (common/nn/family) reads from config.json. */
#ifndef TG_NN_ARCH_H
#define TG_NN_ARCH_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_arch {
    char family[24]; /* model_type: "gpt2" */
    int n_layers, n_heads, n_kv_heads, head_dim, width, mlp_width;
    int vocab_size, max_positions;
    float norm_eps;
    bool tied_head;         /* the output matrix is the token embedding */
    bool value_head;        /* has value_head.weight (1, width): a critic, or a shared trunk */
    bool unscaled_attn;     /* scores are not divided by sqrt(head_dim) */
    bool layer_scaled_attn; /* scores are also divided by layer + 1 */
    int32_t bos_id, eos_id, pad_id; /* -1: none, or outside the vocabulary */
} tg_arch;

/* The architecture of a folder, from its config.json alone: for checks and memory plans. */
tg_status tg_arch_load(tg_arch *arch, const char *folder, tg_error *err) TG_MUST_CHECK;

/* TG_DATA, naming the field, when the numbers do not make a model; TG_UNSUPPORTED for an unknown
 * family. */
tg_status tg_arch_check(const tg_arch *arch, tg_error *err) TG_MUST_CHECK;

#endif
