/* ALBERT (Lan et al. 2019): BERT whose layers share their parameters and whose embeddings are narrow, with a product that widens them. Keys
 * and defaults are those of transformers' AlbertConfig. */
#include "common/nn/family/encoders.h"

#define D "albert."
#define H D "encoder.albert_layer_groups.%d.albert_layers.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW(D "embeddings.word_embeddings.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB,
           TG_DIM_EMBED),
    TG_ROW(D "embeddings.position_embeddings.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL,
           TG_DIM_POSITIONS, TG_DIM_EMBED),
    TG_ROW_IF(types, D "embeddings.token_type_embeddings.weight", TG_ROLE_TYPE_EMBED,
              TG_INIT_NORMAL, TG_DIM_TYPES, TG_DIM_EMBED),
    TG_NORM_PAIR(D "embeddings.LayerNorm", TG_ROLE_EMBED_NORM, TG_DIM_EMBED),
    TG_PAIR(D "encoder.embedding_hidden_mapping_in", TG_ROLE_EMBED_IN, TG_INIT_NORMAL, W, W,
            TG_DIM_EMBED),
    TG_ROW(H "attention.query.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.key.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.value.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attention.query.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_ROW(H "attention.key.bias", TG_ROLE_K_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_ROW(H "attention.value.bias", TG_ROLE_V_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_PAIR(H "attention.dense", TG_ROLE_ATTN_OUT, TG_INIT_NORMAL, W, W, TG_DIM_ATTN),
    TG_NORM_PAIR(H "attention.LayerNorm", TG_ROLE_NORM1, W),
    TG_PAIR(H "ffn", TG_ROLE_UP, TG_INIT_NORMAL, TG_DIM_MLP, TG_DIM_MLP, W),
    TG_PAIR(H "ffn_output", TG_ROLE_DOWN, TG_INIT_NORMAL, W, W, TG_DIM_MLP),
    TG_NORM_PAIR(H "full_layer_layer_norm", TG_ROLE_NORM2, W),
    TG_PAIR_IF(pooler, D "pooler", TG_ROLE_POOL, TG_INIT_NORMAL, W, W, W),
    TG_PAIR_IF(labels, "classifier", TG_ROLE_LABELS, TG_INIT_NORMAL, TG_DIM_LABELS, TG_DIM_LABELS,
               W),
    {0},
};
#undef W
#undef H
#undef D

static const char *const ignored[] = {"embeddings.position_ids",
                                      "embeddings.token_type_ids",
                                      "pooler.weight",
                                      "pooler.bias",
                                      "predictions.bias",
                                      "predictions.LayerNorm.weight",
                                      "predictions.LayerNorm.bias",
                                      "predictions.dense.weight",
                                      "predictions.dense.bias",
                                      "predictions.decoder.weight",
                                      "predictions.decoder.bias",
                                      "sop_classifier.classifier.weight",
                                      "sop_classifier.classifier.bias",
                                      NULL};

static const tg_key keys[] = {TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 30000),
                              TG_SIZE("embedding_size", NULL, embed_width, 1 << 16, 128),
                              TG_SIZE("hidden_size", NULL, width, 1 << 16, 4096),
                              TG_SIZE("num_hidden_layers", NULL, n_layers, TG_MAX_LAYERS, 12),
                              TG_SIZE("num_hidden_groups", NULL, n_groups, TG_MAX_LAYERS, 1),
                              TG_SIZE("num_attention_heads", NULL, n_heads, 1024, 64),
                              TG_SIZE("intermediate_size", NULL, mlp_width, 1 << 18, 16384),
                              TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 512),
                              TG_SIZE("type_vocab_size", NULL, n_types, 1 << 16, 2),
                              TG_ACTIVATION("hidden_act", TG_ACT_GELU_TANH),
                              TG_NUMBER("layer_norm_eps", norm_eps, 1, 1e-12),
                              TG_TOKENS(2, 3, 0),
                              TG_KEYS_END};

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->pool_act = TG_ACT_TANH;
    a->narrow_embed = true;
    tg_status st = tg_encoder_read(keys, a, c, "Albert", err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "inner_group_num", NULL, 1, 64, 1, &a->inner_group, err);
    if (st != TG_OK) return st;
    if (a->n_layers * a->inner_group > TG_MAX_LAYERS || a->n_groups > a->n_layers)
        return tg_fail(err, TG_DATA, "%s: num_hidden_layers: %d do not go with %d groups of %d",
                       c->path, a->n_layers, a->n_groups, a->inner_group);
    a->n_layers *= a->inner_group; /* a layer of theirs runs all of its group's */
    a->n_groups *= a->inner_group;
    return TG_OK;
}

static bool write_config(const tg_arch *a, json_t *o) {
    tg_arch theirs = *a;
    theirs.n_layers /= a->inner_group;
    theirs.n_groups /= a->inner_group;
    return !json_object_set_new(o, "inner_group_num", json_integer(a->inner_group)) &&
           tg_encoder_write(keys, &theirs, o, "Albert");
}

const tg_family tg_family_albert = {
    .name = "albert",
    .summary = "ALBERT: BERT with shared layers and narrow embeddings",
    .prefix = "albert.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
