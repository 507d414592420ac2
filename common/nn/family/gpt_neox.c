/* GPT-NeoX (Black et al. 2022) and Pythia: attention and MLP side by side behind two norms (or in sequence), partly rotary positions, a
 * fused qkv matrix head by head. Keys and defaults are those of transformers' GPTNeoXConfig. */
#include "common/nn/family/decoders.h"

#define H "gpt_neox.layers.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW("gpt_neox.embed_in.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    TG_ROW(H "input_layernorm.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, W),
    TG_ROW(H "input_layernorm.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, W),
    TG_ROW(H "attention.query_key_value.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_QKV, W),
    TG_ROW_IF(qkv_bias, H "attention.query_key_value.bias", TG_ROLE_QKV_B, TG_INIT_ZERO,
              TG_DIM_QKV),
    TG_ROW(H "attention.dense.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    TG_ROW_IF(qkv_bias, H "attention.dense.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, W),
    TG_ROW(H "post_attention_layernorm.weight", TG_ROLE_NORM2_W, TG_INIT_ONE, W),
    TG_ROW(H "post_attention_layernorm.bias", TG_ROLE_NORM2_B, TG_INIT_ZERO, W),
    TG_ROW(H "mlp.dense_h_to_4h.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),
    TG_ROW(H "mlp.dense_h_to_4h.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "mlp.dense_4h_to_h.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),
    TG_ROW(H "mlp.dense_4h_to_h.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),
    TG_ROW("gpt_neox.final_layer_norm.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("gpt_neox.final_layer_norm.bias", TG_ROLE_FINAL_B, TG_INIT_ZERO, W),
    TG_ROW("embed_out.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    {0},
};
#undef W
#undef H

static const char *const ignored[] = {"layers.%d.attention.bias", "layers.%d.attention.masked_bias",
                                      "layers.%d.attention.rotary_emb.inv_freq",
                                      "rotary_emb.inv_freq", NULL};

static const tg_key keys[] = {
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 50432),
    TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 2048),
    TG_SIZE("hidden_size", NULL, width, 1 << 16, 6144),
    TG_SIZE("num_hidden_layers", NULL, n_layers, TG_MAX_LAYERS, 44),
    TG_SIZE("num_attention_heads", NULL, n_heads, 1024, 64),
    TG_SIZE("intermediate_size", NULL, mlp_width, 1 << 18, 24576),
    TG_ACTIVATION("hidden_act", TG_ACT_GELU),
    TG_NUMBER("layer_norm_eps", norm_eps, 1, 1e-5),
    TG_FLAG("use_parallel_residual", parallel, 1),
    TG_FLAG("attention_bias", qkv_bias, 1),
    TG_FLAG("tie_word_embeddings", tied_head, 0),
    TG_TOKENS(0, 2, -1),
    TG_KEYS_END};

/* transformers takes it for the part that is turned, and for nothing else. */
static tg_status check_head_dim(const tg_arch *a, const tg_config_json *c, tg_error *err) {
    int size;
    tg_status st = tg_config_json_int(c, "head_dim", NULL, 1, 1 << 16, a->head_dim, &size, err);
    if (st == TG_OK && size != a->head_dim)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "%s: head_dim: %d for heads of %d is not built into this version (remove it)",
                     c->path, size, a->head_dim);
    return st;
}

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->out_in = a->qkv_by_head = true;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = tg_decoder_sizes(a, c, 4, err);
    if (st == TG_OK) st = check_head_dim(a, c, err);
    if (st == TG_OK) st = tg_rope_read(a, c, 0.25, err);
    return st;
}

static bool write_config(const tg_arch *a, json_t *o) {
    return tg_rope_write(a, o) && tg_keys_write(keys, a, o, "GPTNeoXForCausalLM");
}

const tg_family tg_family_gpt_neox = {
    .name = "gpt_neox",
    .summary = "GPT-NeoX, Pythia: attention and MLP in parallel, partly rotary positions",
    .prefix = "gpt_neox.",
    .tensors = tensors,
    .ignored = ignored,
    .head_alias = "lm_head.weight",
    .read = read_config,
    .write = write_config,
};
