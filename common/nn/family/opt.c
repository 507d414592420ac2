/* OPT (Zhang et al. 2022): GPT-2's layers with relu, separate queries, keys and values, and positions that start at row 2 of their table; the
 * 350M model has its norms behind each branch and narrow embeddings.
 * Keys and defaults are those of transformers' OPTConfig. */
#include "common/nn/family/decoders.h"

#define D "model.decoder."
#define H D "layers.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW(D "embed_tokens.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB,
           TG_DIM_EMBED),
    TG_ROW(D "embed_positions.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL, TG_DIM_POSITIONS, W),
    TG_ROW_IF(narrow_embed, D "project_in.weight", TG_ROLE_EMBED_IN_W, TG_INIT_NORMAL, W,
              TG_DIM_EMBED),
    TG_ROW_UNLESS(plain_norms, H "self_attn_layer_norm.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, W),
    TG_ROW_UNLESS(plain_norms, H "self_attn_layer_norm.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, W),
    TG_ROW(H "self_attn.q_proj.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "self_attn.k_proj.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(H "self_attn.v_proj.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW_IF(qkv_bias, H "self_attn.q_proj.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_ATTN),
    TG_ROW_IF(qkv_bias, H "self_attn.k_proj.bias", TG_ROLE_K_B, TG_INIT_ZERO, TG_DIM_KV),
    TG_ROW_IF(qkv_bias, H "self_attn.v_proj.bias", TG_ROLE_V_B, TG_INIT_ZERO, TG_DIM_KV),
    TG_ROW(H "self_attn.out_proj.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    TG_ROW_IF(qkv_bias, H "self_attn.out_proj.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, W),
    TG_ROW_UNLESS(plain_norms, H "final_layer_norm.weight", TG_ROLE_NORM2_W, TG_INIT_ONE, W),
    TG_ROW_UNLESS(plain_norms, H "final_layer_norm.bias", TG_ROLE_NORM2_B, TG_INIT_ZERO, W),
    TG_ROW(H "fc1.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),
    TG_ROW_IF(qkv_bias, H "fc1.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "fc2.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),
    TG_ROW_IF(qkv_bias, H "fc2.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),
    TG_ROW_IF_UNLESS(final_norm, plain_norms, D "final_layer_norm.weight", TG_ROLE_FINAL_W,
                     TG_INIT_ONE, W),
    TG_ROW_IF_UNLESS(final_norm, plain_norms, D "final_layer_norm.bias", TG_ROLE_FINAL_B,
                     TG_INIT_ZERO, W),
    TG_ROW_IF(narrow_embed, D "project_out.weight", TG_ROLE_HEAD_IN_W, TG_INIT_NORMAL, TG_DIM_EMBED,
              W),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, TG_DIM_EMBED),
    {0},
};
#undef W
#undef H
#undef D

static const char *const ignored[] = {"decoder.version", NULL};

static const tg_key keys[] = {
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 50272),
    TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 2048),
    TG_SIZE("hidden_size", NULL, width, 1 << 16, 768),
    TG_SIZE("num_hidden_layers", NULL, n_layers, TG_MAX_LAYERS, 12),
    TG_SIZE("num_attention_heads", NULL, n_heads, 1024, 12),
    TG_SIZE("ffn_dim", NULL, mlp_width, 1 << 18, 3072),
    TG_ACTIVATION("activation_function", TG_ACT_RELU),
    TG_FLAG("enable_bias", qkv_bias, 1),
    TG_FLAG("tie_word_embeddings", tied_head, 1),
    TG_TOKENS(2, 2, 1),
    TG_KEYS_END};

/* The 350M model: norms behind each branch, narrow embeddings. */
static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    bool before = true, removed = false, affine = true;
    a->out_in = a->pad_fixed = true;
    a->pos_offset = 2;
    a->norm_eps = 1e-5f;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = tg_config_json_bool(c, "do_layer_norm_before", true, &before, err);
    if (st == TG_OK) st = tg_config_json_bool(c, "_remove_final_layer_norm", false, &removed, err);
    if (st == TG_OK)
        st = tg_config_json_bool(c, "layer_norm_elementwise_affine", true, &affine, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "word_embed_proj_dim", NULL, 1, 1 << 16, a->width,
                                &a->embed_width, err);
    if (st != TG_OK) return st;
    a->norm_after = !before;
    a->plain_norms = !affine;
    a->final_norm = before && !removed;
    a->narrow_embed = a->wide_positions = a->embed_width != a->width;
    return tg_decoder_sizes(a, c, 4, err);
}

static bool write_config(const tg_arch *a, json_t *o) {
    int failed = json_object_set_new(o, "word_embed_proj_dim", json_integer(a->embed_width));
    failed |= json_object_set_new(o, "do_layer_norm_before", json_boolean(!a->norm_after));
    failed |= json_object_set_new(o, "_remove_final_layer_norm",
                                  json_boolean(!a->norm_after && !a->final_norm));
    failed |=
        json_object_set_new(o, "layer_norm_elementwise_affine", json_boolean(!a->plain_norms));
    return !failed && tg_keys_write(keys, a, o, "OPTForCausalLM");
}

const tg_family tg_family_opt = {
    .name = "opt",
    .summary =
        "OPT: decoder, norms before or behind each branch, learned positions, relu, tied head",
    .prefix = "model.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
