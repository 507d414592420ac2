/* GPT-Neo (Black et al. 2021): GPT-2 with separate, unbiased and unscaled attention, every other layer of it local. Keys and defaults
 * are those of transformers' GPTNeoConfig. */
#include "common/nn/family/decoders.h"

#include <string.h>

#define H "transformer.h.%d."
#define A H "attn.attention."
#define W TG_DIM_WIDTH
static const tg_family_tensor tensors[] = {
    TG_ROW("transformer.wte.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    TG_ROW("transformer.wpe.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL, TG_DIM_POSITIONS, W),
    TG_ROW(H "ln_1.weight", TG_ROLE_NORM1_W, TG_INIT_ONE, W),
    TG_ROW(H "ln_1.bias", TG_ROLE_NORM1_B, TG_INIT_ZERO, W),
    TG_ROW(A "q_proj.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(A "k_proj.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(A "v_proj.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(A "out_proj.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    TG_ROW(A "out_proj.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, W),
    TG_ROW(H "ln_2.weight", TG_ROLE_NORM2_W, TG_INIT_ONE, W),
    TG_ROW(H "ln_2.bias", TG_ROLE_NORM2_B, TG_INIT_ZERO, W),
    TG_ROW(H "mlp.c_fc.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),
    TG_ROW(H "mlp.c_fc.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),
    TG_ROW(H "mlp.c_proj.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),
    TG_ROW(H "mlp.c_proj.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),
    TG_ROW("transformer.ln_f.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("transformer.ln_f.bias", TG_ROLE_FINAL_B, TG_INIT_ZERO, W),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    {0},
};
#undef W
#undef A
#undef H

static const char *const ignored[] = {"h.%d.attn.attention.bias", "h.%d.attn.attention.masked_bias",
                                      NULL};

static const tg_key keys[] = {
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, 50257),
    TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 2048),
    TG_SIZE("hidden_size", NULL, width, 1 << 16, 2048),
    TG_SIZE("num_layers", "num_hidden_layers", n_layers, TG_MAX_LAYERS, 24),
    TG_SIZE("num_heads", "num_attention_heads", n_heads, 1024, 16),
    TG_SIZE("intermediate_size", NULL, mlp_width, 1 << 18, 0),
    TG_ACTIVATION("activation_function", TG_ACT_GELU_TANH),
    TG_NUMBER("layer_norm_epsilon", norm_eps, 1, 1e-5),
    TG_FLAG("tie_word_embeddings", tied_head, 1),
    TG_TOKENS(50256, 50256, -1),
    TG_KEYS_END};

static tg_status read_name(tg_arch *a, const json_t *item, int layer, const char *key,
                           const tg_config_json *c, tg_error *err) {
    const char *name = json_string_value(item);
    if (!name || (strcmp(name, "global") && strcmp(name, "local")))
        return tg_fail(
            err, TG_UNSUPPORTED,
            "%s: %s: \"%.40s\" is not built into this version (there are: global, local)", c->path,
            key, name ? name : "?");
    if (!strcmp(name, "local")) tg_layer_set_local(a, layer);
    return TG_OK;
}

/* One entry of attention_types: [["global", "local"], 12] repeats the names 12 times. */
static tg_status read_types(tg_arch *a, json_t *entry, int *layer, const tg_config_json *c,
                            tg_error *err) {
    json_t *names = json_array_get(entry, 0), *times = json_array_get(entry, 1);
    if (!json_is_array(names) || !json_is_integer(times))
        return tg_fail(err, TG_DATA,
                       "%s: attention_types: expected [[[names], times], ...] such as "
                       "[[[\"global\", \"local\"], 12]]",
                       c->path);
    for (json_int_t k = 0; k < json_integer_value(times); k++) {
        size_t i;
        json_t *item;
        json_array_foreach(names, i, item) {
            if (*layer >= a->n_layers) return TG_OK; /* counted below by the caller */
            tg_status st = read_name(a, item, *layer, "attention_types", c, err);
            if (st != TG_OK) return st;
            (*layer)++;
        }
        if (!json_array_size(names)) break;
    }
    return TG_OK;
}

/* attention_layers, which transformers writes too and prefers: a name for each layer. */
static tg_status read_listed(tg_arch *a, json_t *names, const tg_config_json *c, tg_error *err) {
    if (!json_is_array(names) || json_array_size(names) != (size_t)a->n_layers)
        return tg_fail(err, TG_DATA, "%s: attention_layers: expected a list of %d names", c->path,
                       a->n_layers);
    for (int i = 0; i < a->n_layers; i++) {
        tg_status st =
            read_name(a, json_array_get(names, (size_t)i), i, "attention_layers", c, err);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static tg_status read_layers(tg_arch *a, const tg_config_json *c, tg_error *err) {
    json_t *types = json_object_get(c->root, "attention_types"), *entry;
    json_t *names = json_object_get(c->root, "attention_layers");
    if (names && !json_is_null(names)) return read_listed(a, names, c, err);
    if (!types || json_is_null(types)) {
        if (a->n_layers != 24)
            return tg_fail(err, TG_DATA, "%s: attention_types: missing for %d layers", c->path,
                           a->n_layers);
        for (int i = 1; i < a->n_layers; i += 2) tg_layer_set_local(a, i);
        return TG_OK;
    }
    int layer = 0;
    size_t i;
    tg_status st = TG_OK;
    json_array_foreach(types, i, entry) {
        st = read_types(a, entry, &layer, c, err);
        if (st != TG_OK) return st;
    }
    if (layer != a->n_layers)
        return tg_fail(err, TG_DATA, "%s: attention_types: names %d layers, num_layers is %d",
                       c->path, layer, a->n_layers);
    return TG_OK;
}

static tg_status read_config(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->out_in = a->unscaled_attn = true;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = tg_decoder_sizes(a, c, 4, err);
    if (st == TG_OK) st = tg_window_read(a, c, "window_size", 256, err);
    if (st == TG_OK) st = read_layers(a, c, err);
    return st;
}

static bool write_config(const tg_arch *a, json_t *o) {
    int failed = 0;
    if (!json_object_get(o, "window_size"))
        failed |= json_object_set_new(o, "window_size", json_integer(a->window ? a->window : 256));
    if (!json_object_get(o, "attention_types")) {
        json_t *names = json_array();
        for (int i = 0; names && i < a->n_layers; i++)
            failed |= json_array_append_new(
                names, json_string(tg_arch_is_local(a, i) ? "local" : "global"));
        failed |= json_object_set_new(o, "attention_types", json_pack("[[o, i]]", names, 1));
    }
    return !failed && tg_keys_write(keys, a, o, "GPTNeoForCausalLM");
}

const tg_family tg_family_gpt_neo = {
    .name = "gpt_neo",
    .summary = "GPT-Neo: GPT-2 with unscaled attention, every other layer local",
    .prefix = "transformer.",
    .tensors = tensors,
    .ignored = ignored,
    .read = read_config,
    .write = write_config,
};
