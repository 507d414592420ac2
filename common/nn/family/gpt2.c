/* GPT-2 (Radford et al. 2019): pre-norm layers, learned positions, fused qkv, gelu_new, tied head.
 * Linear weights are stored (inputs, outputs). Keys and defaults are those of transformers'
 * GPT2Config. */
#include "common/nn/family/decoders.h"

#include <stdio.h>

#define H "transformer.h.%d."
static const tg_family_tensor tensors[] = {
    TG_ROW("transformer.wte.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB,
           TG_DIM_WIDTH),
    TG_ROW("transformer.wpe.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL, TG_DIM_POSITIONS,
           TG_DIM_WIDTH),
    TG_ROW(H "ln_1.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, TG_DIM_WIDTH),
    TG_ROW(H "ln_1.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, TG_DIM_WIDTH),
    TG_ROW(H "attn.c_attn.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_WIDTH, TG_DIM_QKV),
    TG_ROW(H "attn.c_attn.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_QKV),
    TG_ROW(H "attn.c_proj.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, TG_DIM_ATTN, TG_DIM_WIDTH),
    TG_ROW(H "attn.c_proj.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, TG_DIM_WIDTH),
    TG_ROW(H "ln_2.weight", TG_ROLE_NORM2_W, TG_INIT_ONE, TG_DIM_WIDTH),
    TG_ROW(H "ln_2.bias", TG_ROLE_NORM2_B, TG_INIT_ZERO, TG_DIM_WIDTH),
    TG_ROW(H "mlp.c_fc.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_WIDTH, TG_DIM_MLP),
    TG_ROW(H "mlp.c_fc.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "mlp.c_proj.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, TG_DIM_MLP, TG_DIM_WIDTH),
    TG_ROW(H "mlp.c_proj.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, TG_DIM_WIDTH),
    TG_ROW("transformer.ln_f.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, TG_DIM_WIDTH),
    TG_ROW("transformer.ln_f.bias", TG_ROLE_FINAL_B, TG_INIT_ZERO, TG_DIM_WIDTH),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, TG_DIM_WIDTH),
    {0},
};
#undef H

/* The causal mask, which files written before transformers 4.26 carry; the second head of GPT2DoubleHeadsModel, whose first writes text. */
static const char *const ignored[] = {"h.%d.attn.bias", "h.%d.attn.masked_bias",
                                      "multiple_choice_head.summary.weight",
                                      "multiple_choice_head.summary.bias", NULL};

static tg_status read_sizes(tg_arch *a, const tg_config_json *c, tg_error *err) {
    static const struct {
        const char *key, *alias;
        int64_t max, def;
        size_t field;
    } sizes[] = {
        {"vocab_size", NULL, 1 << 24, 50257, offsetof(tg_arch, vocab_size)},
        {"n_positions", "max_position_embeddings", 1 << 24, 1024, offsetof(tg_arch, max_positions)},
        {"n_embd", "hidden_size", 1 << 16, 768, offsetof(tg_arch, width)},
        {"n_layer", "num_hidden_layers", 1024, 12, offsetof(tg_arch, n_layers)},
        {"n_head", "num_attention_heads", 1024, 12, offsetof(tg_arch, n_heads)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int *field = (int *)(void *)((char *)a + sizes[i].field);
        tg_status st = tg_config_json_int(c, sizes[i].key, sizes[i].alias, 1, sizes[i].max,
                                          sizes[i].def, field, err);
        if (st != TG_OK) return st;
    }
    if (a->width % a->n_heads)
        return tg_fail(err, TG_DATA, "%s: n_embd: %d is not a multiple of n_head %d", c->path,
                       a->width, a->n_heads);
    a->n_kv_heads = a->n_heads;
    a->head_dim = a->width / a->n_heads;
    return tg_config_json_int(c, "n_inner", NULL, 1, 1 << 18, 4 * (int64_t)a->width, &a->mlp_width,
                              err);
}

/* What this computation does not do is refused by name, never ignored. */
static tg_status read_variants(tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = tg_act_read(c, "activation_function", TG_ACT_GELU_TANH, &a->act, err);
    if (st != TG_OK) return st;
    bool cross, scaled;
    st = tg_config_json_bool(c, "add_cross_attention", false, &cross, err);
    if (st != TG_OK) return st;
    if (cross)
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: add_cross_attention: true is not built into this version", c->path);
    st = tg_config_json_bool(c, "scale_attn_weights", true, &scaled, err);
    if (st != TG_OK) return st;
    a->unscaled_attn = !scaled;
    st = tg_config_json_bool(c, "scale_attn_by_inverse_layer_idx", false, &a->layer_scaled_attn,
                             err);
    if (st != TG_OK) return st;
    return tg_config_json_bool(c, "tie_word_embeddings", true, &a->tied_head, err);
}

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = read_sizes(a, c, err);
    if (st == TG_OK) st = read_variants(a, c, err);
    if (st == TG_OK)
        st = tg_config_json_float(c, "layer_norm_epsilon", 0, 1, 1e-5, &a->norm_eps, err);
    if (st == TG_OK)
        st = tg_config_json_token(c, "bos_token_id", 50256, a->vocab_size, &a->bos_id, err);
    if (st == TG_OK)
        st = tg_config_json_token(c, "eos_token_id", 50256, a->vocab_size, &a->eos_id, err);
    if (st == TG_OK)
        st = tg_config_json_token(c, "pad_token_id", -1, a->vocab_size, &a->pad_id, err);
    return st;
}

/* A float as the shortest decimal that reads back to it: 1e-5, not 9.99999975e-06. */
static double shortest(float x) {
    char text[32];
    for (int digits = 1; digits < 10; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x) break;
    }
    return strtod(text, NULL);
}

static json_t *token(int32_t id) {
    return id < 0 ? json_null() : json_integer(id);
}

static bool write_config(const tg_arch *a, json_t *o) {
    int failed = json_object_set_new(o, "vocab_size", json_integer(a->vocab_size));
    failed |= json_object_set_new(o, "n_positions", json_integer(a->max_positions));
    failed |= json_object_set_new(o, "n_embd", json_integer(a->width));
    failed |= json_object_set_new(o, "n_layer", json_integer(a->n_layers));
    failed |= json_object_set_new(o, "n_head", json_integer(a->n_heads));
    failed |= json_object_set_new(
        o, "n_inner", a->mlp_width == 4 * a->width ? json_null() : json_integer(a->mlp_width));
    if (!json_object_get(o, "activation_function")) /* keep a synonym: its last bits differ there */
        failed |= json_object_set_new(o, "activation_function", json_string(tg_act_name(a->act)));
    failed |= json_object_set_new(o, "layer_norm_epsilon", json_real(shortest(a->norm_eps)));
    failed |= json_object_set_new(o, "scale_attn_weights", json_boolean(!a->unscaled_attn));
    failed |= json_object_set_new(o, "scale_attn_by_inverse_layer_idx",
                                  json_boolean(a->layer_scaled_attn));
    failed |= json_object_set_new(o, "tie_word_embeddings", json_boolean(a->tied_head));
    if (!json_object_get(o, "bos_token_id"))
        failed |= json_object_set_new(o, "bos_token_id", token(a->bos_id));
    if (!json_object_get(o, "eos_token_id"))
        failed |= json_object_set_new(o, "eos_token_id", token(a->eos_id));
    if (!json_object_get(o, "pad_token_id"))
        failed |= json_object_set_new(o, "pad_token_id", token(a->pad_id));
    static const char *const words[][2] = {
        {"architectures", "GPT2LMHeadModel"}, {"model_type", "gpt2"}, {"torch_dtype", "float32"}};
    failed |= json_object_set_new(o, words[0][0], json_pack("[s]", words[0][1]));
    failed |= json_object_set_new(o, words[1][0], json_string(words[1][1]));
    failed |= json_object_set_new(o, words[2][0], json_string(words[2][1]));
    return !failed;
}

const tg_family tg_family_gpt2 = {
    .name = "gpt2",
    .summary = "GPT-2: pre-norm decoder, learned positions, tied head",
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
