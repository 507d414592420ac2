/* GPT-J (Wang & Komatsuzaki 2021): attention and MLP side by side behind one norm, rotary positions in neighbouring pairs, a biased head.
 * Keys and defaults are those of transformers' GPTJConfig. */
#include "common/nn/family/decoders.h"

#define H "transformer.h.%d."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW("transformer.wte.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    TG_ROW(H "ln_1.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, W),
    TG_ROW(H "ln_1.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, W),
    TG_ROW(H "attn.q_proj.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(H "attn.k_proj.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(H "attn.v_proj.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(H "attn.out_proj.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    TG_ROW(H "mlp.fc_in.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),
    TG_ROW(H "mlp.fc_in.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "mlp.fc_out.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),
    TG_ROW(H "mlp.fc_out.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),
    TG_ROW("transformer.ln_f.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("transformer.ln_f.bias", TG_ROLE_FINAL_B, TG_INIT_ZERO, W),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    TG_ROW("lm_head.bias", TG_ROLE_HEAD_B, TG_INIT_ZERO, TG_DIM_VOCAB),
    {0},
};
#undef W
#undef H

static const char *const ignored[] = {"h.%d.attn.bias", "h.%d.attn.masked_bias",
                                      "h.%d.attn.embed_positions", NULL};

static const tg_key keys[] = {
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 50400),
    TG_SIZE("n_positions", "max_position_embeddings", max_positions, 1 << 24, 2048),
    TG_SIZE("n_embd", "hidden_size", width, 1 << 16, 4096),
    TG_SIZE("n_layer", "num_hidden_layers", n_layers, TG_MAX_LAYERS, 28),
    TG_SIZE("n_head", "num_attention_heads", n_heads, 1024, 16),
    TG_SIZE("n_inner", NULL, mlp_width, 1 << 18, 0),
    TG_SIZE("rotary_dim", NULL, rope.dims, 1 << 16, 64),
    TG_ACTIVATION("activation_function", TG_ACT_GELU_TANH),
    TG_NUMBER("layer_norm_epsilon", norm_eps, 1, 1e-5),
    TG_FLAG("tie_word_embeddings", tied_head, 0),
    TG_TOKENS(50256, 50256, -1),
    TG_KEYS_END};

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->out_in = a->parallel = a->head_bias = true;
    a->rope.pairs = true;
    a->rope.theta = 10000;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = tg_decoder_sizes(a, c, 4, err);
    if (st == TG_OK && !a->rope.dims)
        st = tg_fail(err, TG_UNSUPPORTED, "%s: rotary_dim: null is not built into this version",
                     c->path);
    return st;
}

static bool write_config(const tg_arch *a, json_t *o) {
    return tg_keys_write(keys, a, o, "GPTJForCausalLM");
}

const tg_family tg_family_gptj = {
    .name = "gptj",
    .summary = "GPT-J: attention and MLP in parallel, rotary positions in pairs, biased head",
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
