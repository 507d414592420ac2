/* BLOOM (Scao et al. 2022): ALiBi in place of positions, normalised embeddings, a fused qkv matrix head by head. Keys and defaults are those
 * of transformers' BloomConfig. Nothing in the model bounds the length of a text; seq_length does where config.json has it. */
#include "common/nn/family/decoders.h"

#define H "transformer.h.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW("transformer.word_embeddings.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB,
           W),
    TG_ROW("transformer.word_embeddings_layernorm.weight", TG_ROLE_EMBED_NORM_W, TG_INIT_ONE, W),
    TG_ROW("transformer.word_embeddings_layernorm.bias", TG_ROLE_EMBED_NORM_B, TG_INIT_ZERO, W),
    TG_ROW(H "input_layernorm.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, W),
    TG_ROW(H "input_layernorm.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, W),
    TG_ROW(H "self_attention.query_key_value.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_QKV, W),
    TG_ROW(H "self_attention.query_key_value.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_QKV),
    TG_ROW(H "self_attention.dense.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    TG_ROW(H "self_attention.dense.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, W),
    TG_ROW(H "post_attention_layernorm.weight", TG_ROLE_NORM2_W, TG_INIT_ONE, W),
    TG_ROW(H "post_attention_layernorm.bias", TG_ROLE_NORM2_B, TG_INIT_ZERO, W),
    TG_ROW(H "mlp.dense_h_to_4h.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),
    TG_ROW(H "mlp.dense_h_to_4h.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "mlp.dense_4h_to_h.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),
    TG_ROW(H "mlp.dense_4h_to_h.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),
    TG_ROW("transformer.ln_f.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("transformer.ln_f.bias", TG_ROLE_FINAL_B, TG_INIT_ZERO, W),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    {0},
};
#undef W
#undef H

static const char *const ignored[] = {NULL};

static const tg_key keys[] = {TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 250880),
                              TG_SIZE("hidden_size", "n_embed", width, 1 << 16, 64),
                              TG_SIZE("n_layer", "num_hidden_layers", n_layers, TG_MAX_LAYERS, 2),
                              TG_SIZE("n_head", "num_attention_heads", n_heads, 1024, 8),
                              TG_NUMBER("layer_norm_epsilon", norm_eps, 1, 1e-5),
                              TG_FLAG("apply_residual_connection_post_layernorm", norm_stream, 0),
                              TG_FLAG("tie_word_embeddings", tied_head, 1),
                              TG_TOKENS(1, 2, -1),
                              TG_KEYS_END};

/* transformers adds products of slices without the bias then. */
static tg_status check_slices(const tg_config_json *c, tg_error *err) {
    bool slow;
    int slices;
    tg_status st = tg_config_json_bool(c, "slow_but_exact", false, &slow, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "pretraining_tp", NULL, 1, 1 << 20, 1, &slices, err);
    if (st == TG_OK && slow && slices > 1)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "%s: slow_but_exact with pretraining_tp %d is not built into this version "
                     "(set slow_but_exact to false)",
                     c->path, slices);
    return st;
}

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->out_in = a->qkv_by_head = a->alibi = a->embed_norm = a->endless = true;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "seq_length", "max_position_embeddings", 1, 1 << 24, 2048,
                                &a->max_positions, err);
    if (st == TG_OK) st = check_slices(c, err);
    return st == TG_OK ? tg_decoder_sizes(a, c, 4, err) : st;
}

static bool write_config(const tg_arch *a, json_t *o) {
    if (!json_object_get(o, "seq_length") && !json_object_get(o, "max_position_embeddings") &&
        a->max_positions != 2048 &&
        json_object_set_new(o, "seq_length", json_integer(a->max_positions)))
        return false;
    return tg_keys_write(keys, a, o, "BloomForCausalLM");
}

const tg_family tg_family_bloom = {
    .name = "bloom",
    .summary = "BLOOM: ALiBi, normalised embeddings, tied head",
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
