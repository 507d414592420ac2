/* Llama and its kin: RMS norms, rotary positions, grouped key/value heads, gated MLP, no position table. They differ in biases, norms
 * of heads, windows and scales, which are fields of the architecture; keys and defaults are those of transformers' configs. */
#include "common/nn/family/decoders.h"

#include <math.h>
#include <string.h>

#define L "model.layers.%d."
#define W TG_DIM_WIDTH
/* INIT: what leaves a norm as it is (1, or 0 where 1 is added); NORM2: name of the norm before the MLP; MORE: further rows. */
#define LLAMA_ROWS(INIT, NORM2, ...)                                                               \
    TG_ROW("model.embed_tokens.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB, W),     \
        TG_ROW(L "input_layernorm.weight", TG_ROLE_NORM1_W, INIT, W),                              \
        TG_ROW(L "self_attn.q_proj.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),        \
        TG_ROW(L "self_attn.k_proj.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),            \
        TG_ROW(L "self_attn.v_proj.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),            \
        TG_ROW_IF(qkv_bias, L "self_attn.q_proj.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_ATTN),  \
        TG_ROW_IF(qkv_bias, L "self_attn.k_proj.bias", TG_ROLE_K_B, TG_INIT_ZERO, TG_DIM_KV),      \
        TG_ROW_IF(qkv_bias, L "self_attn.v_proj.bias", TG_ROLE_V_B, TG_INIT_ZERO, TG_DIM_KV),      \
        TG_ROW_IF(qk_norm, L "self_attn.q_norm.weight", TG_ROLE_Q_NORM_W, INIT, TG_DIM_HEAD),      \
        TG_ROW_IF(qk_norm, L "self_attn.k_norm.weight", TG_ROLE_K_NORM_W, INIT, TG_DIM_HEAD),      \
        TG_ROW(L "self_attn.o_proj.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN), \
        TG_ROW_IF(attn_out_bias, L "self_attn.o_proj.bias", TG_ROLE_ATTN_OUT_B, TG_INIT_ZERO, W),  \
        TG_ROW(L NORM2, TG_ROLE_NORM2_W, INIT, W),                                                 \
        TG_ROW(L "mlp.gate_proj.weight", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),             \
        TG_ROW(L "mlp.up_proj.weight", TG_ROLE_GATED_W, TG_INIT_NORMAL, TG_DIM_MLP, W),            \
        TG_ROW_IF(mlp_bias, L "mlp.gate_proj.bias", TG_ROLE_UP_B, TG_INIT_ZERO, TG_DIM_MLP),       \
        TG_ROW_IF(mlp_bias, L "mlp.up_proj.bias", TG_ROLE_GATED_B, TG_INIT_ZERO, TG_DIM_MLP),      \
        TG_ROW(L "mlp.down_proj.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP),         \
        TG_ROW_IF(mlp_bias, L "mlp.down_proj.bias", TG_ROLE_DOWN_B, TG_INIT_ZERO, W),              \
        __VA_ARGS__ TG_ROW("model.norm.weight", TG_ROLE_FINAL_W, INIT, W),                         \
        TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W), {               \
        0                                                                                          \
    }

static const tg_family_tensor llama_tensors[] = {
    LLAMA_ROWS(TG_INIT_ONE, "post_attention_layernorm.weight", )};
static const tg_family_tensor gemma_tensors[] = {
    LLAMA_ROWS(TG_INIT_ZERO, "post_attention_layernorm.weight", )};
static const tg_family_tensor gemma2_tensors[] = {
    LLAMA_ROWS(TG_INIT_ZERO, "pre_feedforward_layernorm.weight",
               TG_ROW(L "post_attention_layernorm.weight", TG_ROLE_POST1_W, TG_INIT_ZERO, W),
               TG_ROW(L "post_feedforward_layernorm.weight", TG_ROLE_POST2_W, TG_INIT_ZERO, W), )};
#undef W
#undef L

static const char *const ignored[] = {"layers.%d.self_attn.rotary_emb.inv_freq",
                                      "rotary_emb.inv_freq", NULL};

#define SIZES(vocab_, width_, mlp_, layers_, heads_, kv_, dim_, positions_)                        \
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, vocab_),                                      \
        TG_SIZE("hidden_size", NULL, width, 1 << 16, width_),                                      \
        TG_SIZE("intermediate_size", NULL, mlp_width, 1 << 18, mlp_),                              \
        TG_SIZE("num_hidden_layers", NULL, n_layers, TG_MAX_LAYERS, layers_),                      \
        TG_SIZE("num_attention_heads", NULL, n_heads, 1024, heads_),                               \
        TG_SIZE("num_key_value_heads", NULL, n_kv_heads, 1024, kv_),                               \
        TG_SIZE("head_dim", NULL, head_dim, 1 << 16, dim_),                                        \
        TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, positions_),              \
        TG_NUMBER("rms_norm_eps", norm_eps, 1, 1e-6)

static const tg_key llama_keys[] = {SIZES(32000, 4096, 11008, 32, 32, 0, 0, 2048),
                                    TG_ACTIVATION("hidden_act", TG_ACT_SILU),
                                    TG_FLAG("attention_bias", qkv_bias, 0),
                                    TG_FLAG("mlp_bias", mlp_bias, 0),
                                    TG_FLAG("tie_word_embeddings", tied_head, 0),
                                    TG_TOKENS(1, 2, -1),
                                    TG_KEYS_END};
static const tg_key mistral_keys[] = {
    SIZES(32000, 4096, 14336, 32, 32, 8, 0, 131072), TG_ACTIVATION("hidden_act", TG_ACT_SILU),
    TG_FLAG("tie_word_embeddings", tied_head, 0), TG_TOKENS(1, 2, -1), TG_KEYS_END};
static const tg_key qwen2_keys[] = {
    SIZES(151936, 4096, 22016, 32, 32, 32, 0, 32768), TG_ACTIVATION("hidden_act", TG_ACT_SILU),
    TG_FLAG("tie_word_embeddings", tied_head, 0), TG_TOKENS(-1, -1, -1), TG_KEYS_END};
static const tg_key qwen3_keys[] = {SIZES(151936, 4096, 22016, 32, 32, 32, 128, 32768),
                                    TG_ACTIVATION("hidden_act", TG_ACT_SILU),
                                    TG_FLAG("attention_bias", qkv_bias, 0),
                                    TG_FLAG("tie_word_embeddings", tied_head, 0),
                                    TG_TOKENS(-1, -1, -1),
                                    TG_KEYS_END};
static const tg_key gemma_keys[] = {SIZES(256000, 3072, 24576, 28, 16, 16, 256, 8192),
                                    TG_ACTIVATION("hidden_act", TG_ACT_GELU_TANH),
                                    TG_FLAG("attention_bias", qkv_bias, 0),
                                    TG_ONLY("use_bidirectional_attention", 0),
                                    TG_FLAG("tie_word_embeddings", tied_head, 1),
                                    TG_TOKENS(2, 1, 0),
                                    TG_KEYS_END};
static const tg_key gemma2_keys[] = {SIZES(256000, 2304, 9216, 26, 8, 4, 256, 8192),
                                     TG_ACTIVATION("hidden_activation", TG_ACT_GELU_TANH),
                                     TG_FLAG("attention_bias", qkv_bias, 0),
                                     TG_ONLY("use_bidirectional_attention", 0),
                                     TG_NUMBER("attn_logit_softcapping", attn_softcap, 1e6, 50),
                                     TG_NUMBER("final_logit_softcapping", logit_softcap, 1e6, 30),
                                     TG_FLAG("tie_word_embeddings", tied_head, 1),
                                     TG_TOKENS(2, 1, 0),
                                     TG_KEYS_END};
/* attn_logit_softcapping is left from Gemma 2: transformers does not look at it. */
static const tg_key gemma3_keys[] = {SIZES(262208, 2304, 9216, 26, 8, 4, 256, 131072),
                                     TG_ACTIVATION("hidden_activation", TG_ACT_GELU_TANH),
                                     TG_FLAG("attention_bias", qkv_bias, 0),
                                     TG_ONLY("use_bidirectional_attention", 0),
                                     TG_NUMBER("final_logit_softcapping", logit_softcap, 1e6, 0),
                                     TG_FLAG("tie_word_embeddings", tied_head, 1),
                                     TG_TOKENS(2, 1, 0),
                                     TG_KEYS_END};

static tg_status read_sizes(tg_arch *a, const tg_key *keys, const tg_config_json *c,
                            tg_error *err) {
    a->norm = TG_NORM_RMS;
    a->out_in = a->gated = a->pad_fixed = true;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = tg_decoder_sizes(a, c, 4, err);
    a->attn_out_bias = a->qkv_bias;
    return st;
}

static tg_status read_common(tg_arch *a, const tg_key *keys, const tg_config_json *c,
                             tg_error *err) {
    tg_status st = read_sizes(a, keys, c, err);
    return st == TG_OK ? tg_rope_read(a, c, 1, err) : st;
}

static tg_status read_llama(tg_arch *a, const tg_config_json *c, tg_error *err) {
    return read_common(a, llama_keys, c, err);
}

static tg_status read_mistral(tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = read_common(a, mistral_keys, c, err);
    bool listed = false; /* as in Ministral, which transformers makes of such a file */
    if (st == TG_OK) st = tg_window_read(a, c, "sliding_window", 4096, err);
    if (st == TG_OK) st = tg_layer_types_read(a, c, &listed, err);
    for (int i = 0; st == TG_OK && !listed && a->window && i < a->n_layers; i++)
        tg_layer_set_local(a, i);
    tg_window_settle(a);
    return st;
}

/* Windows in the layers from max_window_layers on, if they are used at all. */
static tg_status read_qwen_windows(tg_arch *a, const tg_config_json *c, tg_error *err) {
    bool used, listed;
    int first;
    tg_status st = tg_config_json_bool(c, "use_sliding_window", false, &used, err);
    if (st == TG_OK) st = tg_window_read(a, c, "sliding_window", 4096, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "max_window_layers", NULL, 0, 1 << 20, 28, &first, err);
    if (st != TG_OK) return st;
    if (!used) a->window = 0;
    st = tg_layer_types_read(a, c, &listed, err);
    for (int i = first; st == TG_OK && !listed && a->window && i < a->n_layers; i++)
        tg_layer_set_local(a, i);
    tg_window_settle(a);
    return st;
}

static tg_status read_qwen2(tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = read_common(a, qwen2_keys, c, err);
    a->qkv_bias = true;
    a->attn_out_bias = false;
    return st == TG_OK ? read_qwen_windows(a, c, err) : st;
}

static tg_status read_qwen3(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->qk_norm = true;
    tg_status st = read_common(a, qwen3_keys, c, err);
    return st == TG_OK ? read_qwen_windows(a, c, err) : st;
}

static void set_gemma(tg_arch *a) {
    a->norm_offset = 1;
    a->embed_scale = (float)sqrt((double)a->width);
}

static tg_status read_gemma(tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = read_common(a, gemma_keys, c, err);
    const char *act = json_string_value(json_object_get(c->root, "hidden_act"));
    if (act && !strcmp(act, "gelu"))
        a->act = TG_ACT_GELU_TANH; /* the first releases said this and meant that */
    set_gemma(a);
    return st;
}

/* A cap of 0 is not none to transformers, which divides by it and multiplies with it. */
static tg_status check_cap(const tg_config_json *c, const char *key, tg_error *err) {
    const json_t *cap = json_object_get(c->root, key);
    if (!json_is_number(cap) || json_number_value(cap) > 0) return TG_OK;
    return tg_fail(err, TG_DATA, "%s: %s: expected a number above 0, or null for none, found %g",
                   c->path, key, json_number_value(cap));
}

/* What Gemma 2 and 3 have in common. Where layer_types is not there, all layers but every pattern-th are local. */
static tg_status read_gemma_layers(tg_arch *a, const tg_config_json *c, int pattern,
                                   tg_error *err) {
    float scalar;
    bool listed;
    tg_status st = tg_config_json_float(c, "query_pre_attn_scalar", 1e-6, 1e9, 256, &scalar, err);
    if (st == TG_OK) st = check_cap(c, "final_logit_softcapping", err);
    if (st == TG_OK) st = tg_window_read(a, c, "sliding_window", 4096, err);
    if (st == TG_OK) st = tg_layer_types_read(a, c, &listed, err);
    if (st != TG_OK) return st;
    a->attn_scale = (float)(1 / sqrt((double)scalar));
    for (int i = 0; !listed && a->window && i < a->n_layers; i++)
        if ((i + 1) % pattern) tg_layer_set_local(a, i);
    set_gemma(a);
    return TG_OK;
}

static tg_status read_gemma2(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->post_norms = true;
    tg_status st = read_common(a, gemma2_keys, c, err);
    if (st == TG_OK) st = check_cap(c, "attn_logit_softcapping", err);
    if (st == TG_OK) st = read_gemma_layers(a, c, 2, err);
    tg_window_settle(a);
    return st;
}

static tg_status read_gemma3_text(tg_arch *a, const tg_config_json *c, tg_error *err) {
    int pattern;
    a->post_norms = a->qk_norm = true;
    tg_status st = read_sizes(a, gemma3_keys, c, err);
    if (st == TG_OK) st = tg_rope_read_types(a, c, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "sliding_window_pattern", NULL, 1, 1 << 20, 6, &pattern, err);
    if (st == TG_OK) st = read_gemma_layers(a, c, pattern, err);
    const json_t *types = json_object_get(c->root, "layer_types");
    if (st == TG_OK && !a->window && (!types || json_is_null(types)))
        return tg_fail(err, TG_DATA, "%s: sliding_window: expected a number of tokens", c->path);
    tg_window_settle(a);
    return st;
}

static bool write_llama(const tg_arch *a, json_t *o) {
    return tg_rope_write(a, o) && tg_keys_write(llama_keys, a, o, "LlamaForCausalLM");
}

static bool write_mistral(const tg_arch *a, json_t *o) {
    return tg_rope_write(a, o) && tg_keys_write(mistral_keys, a, o, "MistralForCausalLM") &&
           tg_window_write(a, o, false);
}

static bool write_qwen(const tg_arch *a, const tg_key *keys, json_t *o, const char *class_name) {
    if (!json_object_get(o, "use_sliding_window") &&
        json_object_set_new(o, "use_sliding_window", json_boolean(a->window > 0)))
        return false;
    return tg_rope_write(a, o) && tg_keys_write(keys, a, o, class_name) &&
           tg_window_write(a, o, false);
}

static bool write_qwen2(const tg_arch *a, json_t *o) {
    return write_qwen(a, qwen2_keys, o, "Qwen2ForCausalLM");
}

static bool write_qwen3(const tg_arch *a, json_t *o) {
    return write_qwen(a, qwen3_keys, o, "Qwen3ForCausalLM");
}

/* Where config.json leaves the function open, by the name of their default: the last bits of its other name's results differ. */
static bool write_gelu(const tg_arch *a, json_t *o, const char *key) {
    return a->act != TG_ACT_GELU_TANH || json_object_get(o, key) ||
           !json_object_set_new(o, key, json_string("gelu_pytorch_tanh"));
}

static bool write_gemma(const tg_arch *a, json_t *o) {
    return write_gelu(a, o, "hidden_act") && tg_rope_write(a, o) &&
           tg_keys_write(gemma_keys, a, o, "GemmaForCausalLM");
}

/* transformers takes whole numbers only, and the root of this one was kept in f32. */
static json_t *attn_scalar(const tg_arch *a) {
    const double scale = (double)a->attn_scale, scalar = 1 / (scale * scale);
    const double whole = round(scalar);
    return fabs(scalar - whole) <= 1e-6 * whole ? json_integer((json_int_t)whole)
                                                : json_real(scalar);
}

/* No cap is null: transformers divides by 0.0, and all logits become 0. */
static bool write_no_cap(json_t *o, const char *key, float cap) {
    return cap > 0 || json_object_get(o, key) || !json_object_set_new(o, key, json_null());
}

static bool write_gemma_layers(const tg_arch *a, const tg_key *keys, json_t *o,
                               const char *class_name) {
    if (!write_gelu(a, o, "hidden_activation") ||
        !write_no_cap(o, "final_logit_softcapping", a->logit_softcap) ||
        !write_no_cap(o, "attn_logit_softcapping", a->attn_softcap))
        return false;
    if (!json_object_get(o, "query_pre_attn_scalar") &&
        json_object_set_new(o, "query_pre_attn_scalar", attn_scalar(a)))
        return false;
    return tg_rope_write(a, o) && tg_keys_write(keys, a, o, class_name) &&
           tg_window_write(a, o, true);
}

static bool write_gemma2(const tg_arch *a, json_t *o) {
    return write_gemma_layers(a, gemma2_keys, o, "Gemma2ForCausalLM");
}

static bool write_gemma3_text(const tg_arch *a, json_t *o) {
    /* with labels it becomes ...ForSequenceClassification, which without Text is the model that sees */
    return write_gemma_layers(a, gemma3_keys, o,
                              a->labels ? "Gemma3TextForCausalLM" : "Gemma3ForCausalLM");
}

#define FAMILY(id, text, table)                                                                    \
    const tg_family tg_family_##id = {.name = #id,                                                 \
                                      .summary = text,                                             \
                                      .prefix = "model.",                                          \
                                      .tensors = table,                                            \
                                      .ignored = ignored,                                          \
                                      .read = read_##id,                                           \
                                      .write = write_##id};
FAMILY(llama, "Llama: RMS norms, rotary positions, grouped heads, gated MLP", llama_tensors)
FAMILY(mistral, "Mistral: Llama with sliding windows", llama_tensors)
FAMILY(qwen2, "Qwen2: Llama with biased queries, keys and values", llama_tensors)
FAMILY(qwen3, "Qwen3: Llama with norms of queries and keys", llama_tensors)
FAMILY(gemma, "Gemma: Llama with scaled embeddings, weights of norms around 0, tied head",
       gemma_tensors)
FAMILY(gemma2, "Gemma 2: Gemma with norms behind each part, alternating windows, soft capping",
       gemma2_tensors)
FAMILY(gemma3_text, "Gemma 3: Gemma 2 with norms of queries and keys, angles of local layers",
       gemma2_tensors)
