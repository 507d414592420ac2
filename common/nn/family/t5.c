/* T5 and its relatives (Raffel et al. 2020; v1.1, Flan-T5 and mT5 have gates and a head of their own): RMS norms, no biases, unscaled scores with a
 * learned bias by distance that all layers of a stack share. Keys and defaults are those of transformers' T5Config and MT5Config.
 * Nothing in the model bounds the length of a text; n_positions does where it is more than most texts have. */
#include "common/nn/family/decoders.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONG_TEXT = 4096 };

#define W TG_DIM_WIDTH
#define NORM(s_, name_, role_) TG_ROW_IN(s_, name_ "layer_norm.weight", role_, TG_INIT_ONE, W)
#define SELF(s_, p_)                                                                               \
    NORM(s_, p_ "layer.0.", TG_ROLE_NORM1_W),                                                      \
        TG_ROW_IN(s_, p_ "layer.0.SelfAttention.q.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL,          \
                  TG_DIM_ATTN, W),                                                                 \
        TG_ROW_IN(s_, p_ "layer.0.SelfAttention.k.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, \
                  W),                                                                              \
        TG_ROW_IN(s_, p_ "layer.0.SelfAttention.v.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, \
                  W),                                                                              \
        TG_ROW_IN(s_, p_ "layer.0.SelfAttention.o.weight", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL,   \
                  W, TG_DIM_ATTN)
#define MLP(s_, p_)                                                                                \
    NORM(s_, p_, TG_ROLE_NORM2_W),                                                                 \
        TG_ROW_IN_UNLESS(s_, gated, p_ "DenseReluDense.wi.weight", TG_ROLE_UP_W, TG_INIT_NORMAL,   \
                         TG_DIM_MLP, W),                                                           \
        TG_ROW_IN_IF(s_, gated, p_ "DenseReluDense.wi_0.weight", TG_ROLE_UP_W, TG_INIT_NORMAL,     \
                     TG_DIM_MLP, W),                                                               \
        TG_ROW_IN_IF(s_, gated, p_ "DenseReluDense.wi_1.weight", TG_ROLE_GATED_W, TG_INIT_NORMAL,  \
                     TG_DIM_MLP, W),                                                               \
        TG_ROW_IN(s_, p_ "DenseReluDense.wo.weight", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W,          \
                  TG_DIM_MLP)
#define REL ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"
#define E "encoder.block.%d."
#define D "decoder.block.%d."
#define CROSS D "layer.1.EncDecAttention."
static const tg_family_tensor tensors[] = {
    TG_ROW("shared.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    TG_ROW_IN(TG_STACK_ENCODER, "encoder" REL, TG_ROLE_REL_BIAS, TG_INIT_NORMAL, TG_DIM_BUCKETS,
              TG_DIM_HEADS),
    SELF(TG_STACK_ENCODER, E),
    MLP(TG_STACK_ENCODER, E "layer.1."),
    TG_ROW_IN(TG_STACK_ENCODER, "encoder.final_layer_norm.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("decoder" REL, TG_ROLE_REL_BIAS, TG_INIT_NORMAL, TG_DIM_BUCKETS, TG_DIM_HEADS),
    SELF(TG_STACK_MAIN, D),
    NORM(TG_STACK_MAIN, D "layer.1.", TG_ROLE_CROSS_NORM_W),
    TG_ROW(CROSS "q.weight", TG_ROLE_CROSS_Q_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),
    TG_ROW(CROSS "k.weight", TG_ROLE_CROSS_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(CROSS "v.weight", TG_ROLE_CROSS_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),
    TG_ROW(CROSS "o.weight", TG_ROLE_CROSS_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN),
    MLP(TG_STACK_MAIN, D "layer.2."),
    TG_ROW("decoder.final_layer_norm.weight", TG_ROLE_FINAL_W, TG_INIT_ONE, W),
    TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),
    {0},
};
#undef CROSS
#undef D
#undef E
#undef REL
#undef MLP
#undef SELF
#undef NORM
#undef W

/* Which files of the first T5 models carry. */
static const char *const ignored[] = {
    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", NULL};
static const char *const aliases[] = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
                                      NULL};

#define SIZES(vocab_, ff_, layers_, heads_)                                                        \
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, vocab_),                                      \
        TG_SIZE("d_model", "hidden_size", width, 1 << 16, 512),                                    \
        TG_SIZE("d_kv", "head_dim", head_dim, 1 << 16, 64),                                        \
        TG_SIZE("d_ff", NULL, mlp_width, 1 << 18, ff_),                                            \
        TG_SIZE("num_layers", "num_hidden_layers", enc_layers, TG_MAX_LAYERS, layers_),            \
        TG_SIZE("num_decoder_layers", NULL, n_layers, TG_MAX_LAYERS, 0),                           \
        TG_SIZE("num_heads", "num_attention_heads", n_heads, 1024, heads_),                        \
        TG_SIZE("relative_attention_num_buckets", NULL, rel_buckets, 4096, 32),                    \
        TG_SIZE("relative_attention_max_distance", NULL, rel_distance, 1 << 24, 128),              \
        TG_NUMBER("layer_norm_epsilon", norm_eps, 1, 1e-6),                                        \
        TG_FLAG("tie_word_embeddings", tied_head, 1), TG_TOKENS(-1, 1, 0), TG_KEYS_END
static const tg_key t5_keys[] = {SIZES(32128, 2048, 6, 8)};
static const tg_key mt5_keys[] = {SIZES(250112, 1024, 8, 6)};
#undef SIZES

/* "relu", or "gated-gelu", where gelu is its approximation by tanh; what transformers takes it apart into has the last word. */
static tg_status read_mlp(tg_arch *a, const tg_config_json *c, const char *def, tg_error *err) {
    const char *name;
    tg_status st = tg_config_json_str(c, "feed_forward_proj", def, &name, err);
    if (st != TG_OK) return st;
    const bool gated = !strncmp(name, "gated-", 6);
    if (!strcmp(name, "gated-gelu"))
        a->act = TG_ACT_GELU_TANH;
    else if (!tg_act_find(name + (gated ? 6 : 0), &a->act))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: feed_forward_proj: \"%.40s\" is not built into this version (there "
                       "are: relu, gelu, silu, gelu_new, and these with \"gated-\" before them)",
                       c->path, name);
    st = tg_config_json_bool(c, "is_gated_act", gated, &a->gated, err);
    return st == TG_OK ? tg_act_read(c, "dense_act_fn", a->act, &a->act, err) : st;
}

static tg_status read_shared(tg_arch *a, const tg_config_json *c, const tg_key *keys,
                             const char *mlp, tg_error *err) {
    int positions = 0;
    a->kind = TG_KIND_SEQ2SEQ;
    a->norm = TG_NORM_RMS;
    a->out_in = a->unscaled_attn = a->final_norm = a->endless = true;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = read_mlp(a, c, mlp, err);
    if (st == TG_OK)
        st = tg_config_json_int(c, "n_positions", NULL, 1, 1 << 24, LONG_TEXT, &positions, err);
    if (st == TG_OK)
        st = tg_config_json_token(c, "decoder_start_token_id", a->pad_id, a->vocab_size,
                                  &a->start_id, err);
    if (st != TG_OK) return st;
    a->max_positions = positions > LONG_TEXT ? positions : LONG_TEXT;
    if (!a->n_layers) a->n_layers = a->enc_layers;
    a->n_kv_heads = a->enc_heads = a->n_heads;
    a->enc_head_dim = a->head_dim;
    a->enc_mlp_width = a->mlp_width;
    return TG_OK;
}

/* Before scale_decoder_outputs there was one key for both. */
static tg_status read_t5(tg_arch *a, const tg_config_json *c, tg_error *err) {
    bool scaled = false;
    tg_status st = read_shared(a, c, t5_keys, "relu", err);
    if (st == TG_OK && !json_is_null(json_object_get(c->root, "scale_decoder_outputs")))
        st = tg_config_json_bool(c, "scale_decoder_outputs", a->tied_head, &scaled, err);
    if (scaled) a->logit_scale = (float)pow(a->width, -0.5);
    return st;
}

static tg_status read_mt5(tg_arch *a, const tg_config_json *c, tg_error *err) {
    return read_shared(a, c, mt5_keys, "gated-gelu", err);
}

static bool write_shared(const tg_arch *a, json_t *o, const tg_key *keys, const char *class_name) {
    char mlp[40];
    int failed = 0;
    const char *act = a->gated && a->act == TG_ACT_GELU_TANH ? "gelu" : tg_act_name(a->act);
    snprintf(mlp, sizeof mlp, "%s%s", a->gated ? "gated-" : "", act);
    if (!json_object_get(o, "feed_forward_proj"))
        failed |= json_object_set_new(o, "feed_forward_proj", json_string(mlp));
    if (!json_object_get(o, "is_encoder_decoder"))
        failed |= json_object_set_new(o, "is_encoder_decoder", json_true());
    if (!json_object_get(o, "decoder_start_token_id") && a->start_id >= 0)
        failed |= json_object_set_new(o, "decoder_start_token_id", json_integer(a->start_id));
    return tg_keys_write(keys, a, o, class_name) && !failed;
}

static bool write_t5(const tg_arch *a, json_t *o) {
    if (!json_object_get(o, "scale_decoder_outputs") &&
        json_object_set_new(o, "scale_decoder_outputs", json_boolean(a->logit_scale > 0)))
        return false;
    return write_shared(a, o, t5_keys, "T5ForConditionalGeneration");
}

static bool write_mt5(const tg_arch *a, json_t *o) {
    return write_shared(a, o, mt5_keys, "MT5ForConditionalGeneration");
}

#define FAMILY(name_, summary_)                                                                    \
    .name = #name_, .summary = (summary_), .prefix = "", .tensors = tensors, .ignored = ignored,   \
    .embed_aliases = aliases, .head_by_file = true, .read = read_##name_, .write = write_##name_
const tg_family tg_family_t5 = {
    FAMILY(t5, "T5, Flan-T5: encoder and decoder, relative biases, RMS norms")};
const tg_family tg_family_mt5 = {FAMILY(mt5, "mT5: as T5, gated, its own head")};
