/* A model's architecture as data: what its family (common/nn/family) reads from config.json. */
#ifndef TG_NN_ARCH_H
#define TG_NN_ARCH_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tg_arch {
    char family[24];     /* model_type: "gpt2" */
    int n_layers, n_heads, n_kv_heads, head_dim, width, mlp_width;
    int vocab_size, max_positions;
    float norm_eps;
    bool tied_head;      /* the output matrix is the token embedding */
    bool value_head;     /* has value_head.weight (width): a critic, or a shared trunk */
    int32_t bos_id, eos_id, pad_id; /* -1: none */
} tg_arch;

#endif
