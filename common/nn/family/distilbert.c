/* DistilBERT (Sanh et al. 2019): BERT's layers without token types and pooler; labels come from a relu layer of their own. Keys and
 * defaults are those of transformers' DistilBertConfig. */
#include "common/nn/family/encoders.h"

#define D "distilbert."
#define H D "transformer.layer.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW(D "embeddings.word_embeddings.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB,
           W),
    TG_ROW(D "embeddings.position_embeddings.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL,
           TG_DIM_POSITIONS, W),
    TG_NORM_PAIR(D "embeddings.LayerNorm", TG_ROLE_EMBED_NORM, W),
    TG_ROW(H "attention.q_lin.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.k_lin.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.v_lin.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.q_lin.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_ROW(H "attention.k_lin.bias", TG_ROLE_K_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_ROW(H "attention.v_lin.bias", TG_ROLE_V_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_PAIR(H "attention.out_lin", TG_ROLE_ATTN_OUT, TG_INIT_NORMAL, W, W, TG_DIM_ATTN),
    TG_NORM_PAIR(H "sa_layer_norm", TG_ROLE_NORM1, W),
    TG_PAIR(H "ffn.lin1", TG_ROLE_UP, TG_INIT_NORMAL, TG_DIM_MLP, TG_DIM_MLP, W),
    TG_PAIR(H "ffn.lin2", TG_ROLE_DOWN, TG_INIT_NORMAL, W, W, TG_DIM_MLP),
    TG_NORM_PAIR(H "output_layer_norm", TG_ROLE_NORM2, W),
    TG_PAIR_IF(labels, "pre_classifier", TG_ROLE_POOL, TG_INIT_NORMAL, W, W, W),
    TG_PAIR_IF(labels, "classifier", TG_ROLE_LABELS, TG_INIT_NORMAL, TG_DIM_LABELS, TG_DIM_LABELS,
               W),
    {0},
};
#undef W
#undef H
#undef D

static const char *const ignored[] = {"embeddings.position_ids", "vocab_transform.weight",
                                      "vocab_transform.bias",    "vocab_layer_norm.weight",
                                      "vocab_layer_norm.bias",   "vocab_projector.weight",
                                      "vocab_projector.bias",    NULL};

static const tg_key keys[] = {TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 30522),
                              TG_SIZE("dim", "hidden_size", width, 1 << 16, 768),
                              TG_SIZE("n_layers", "num_hidden_layers", n_layers, TG_MAX_LAYERS, 6),
                              TG_SIZE("n_heads", "num_attention_heads", n_heads, 1024, 12),
                              TG_SIZE("hidden_dim", NULL, mlp_width, 1 << 18, 3072),
                              TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 512),
                              TG_ACTIVATION("activation", TG_ACT_GELU),
                              TG_TOKENS(-1, -1, 0),
                              TG_KEYS_END};

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->pool_act = TG_ACT_RELU;
    return tg_encoder_read(keys, a, c, "DistilBert", err);
}

static bool write_config(const tg_arch *a, json_t *o) {
    return tg_encoder_write(keys, a, o, "DistilBert");
}

const tg_family tg_family_distilbert = {
    .name = "distilbert",
    .summary = "DistilBERT: BERT's layers without token types, labels by a relu layer",
    .prefix = "distilbert.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
