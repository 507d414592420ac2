/* BART (Lewis et al. 2020) and what was built after it: mBART, Marian, Pegasus, Blenderbot. They differ in where norms lie and in positions:
 *
 *                      norms     embeddings normalised            final norms   positions
 *   bart               after     yes                              no            learned, from row 2
 *   mbart              before    yes                              yes           learned, from row 2
 *   blenderbot         before    no                               yes           learned
 *   blenderbot-small   after     yes; decoder: before positions   no            learned
 *   marian             after     no                               no            waves
 *   pegasus            before    no                               yes           waves
 *
 * Keys and defaults are those of transformers' BartConfig and so on. */
#include "common/nn/family/decoders.h"

#include <math.h>
#include <string.h>

#define W TG_DIM_WIDTH
#define NORM(s_, name_, role_)                                                                     \
    TG_ROW_IN(s_, name_ ".weight", role_, TG_INIT_ONE, W),                                         \
        TG_ROW_IN(s_, name_ ".bias", role_ + 1, TG_INIT_ZERO, W)
#define NORM_IF(s_, when_, name_, role_)                                                           \
    TG_ROW_IN_IF(s_, when_, name_ ".weight", role_, TG_INIT_ONE, W),                               \
        TG_ROW_IN_IF(s_, when_, name_ ".bias", role_ + 1, TG_INIT_ZERO, W)
#define LINEAR(s_, name_, role_, init_, out_, in_)                                                 \
    TG_ROW_IN(s_, name_ ".weight", role_, init_, out_, in_),                                       \
        TG_ROW_IN(s_, name_ ".bias", role_ + 1, TG_INIT_ZERO, out_)
#define SELF(s_, p_)                                                                               \
    NORM(s_, p_ "self_attn_layer_norm", TG_ROLE_NORM1_W),                                          \
        TG_ROW_IN(s_, p_ "self_attn.q_proj.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, TG_DIM_ATTN,    \
                  W),                                                                              \
        TG_ROW_IN(s_, p_ "self_attn.k_proj.weight", TG_ROLE_K_W, TG_INIT_NORMAL, TG_DIM_KV, W),    \
        TG_ROW_IN(s_, p_ "self_attn.v_proj.weight", TG_ROLE_V_W, TG_INIT_NORMAL, TG_DIM_KV, W),    \
        TG_ROW_IN(s_, p_ "self_attn.q_proj.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, TG_DIM_ATTN),       \
        TG_ROW_IN(s_, p_ "self_attn.k_proj.bias", TG_ROLE_K_B, TG_INIT_ZERO, TG_DIM_KV),           \
        TG_ROW_IN(s_, p_ "self_attn.v_proj.bias", TG_ROLE_V_B, TG_INIT_ZERO, TG_DIM_KV),           \
        LINEAR(s_, p_ "self_attn.out_proj", TG_ROLE_ATTN_OUT_W, TG_INIT_RESIDUAL, W, TG_DIM_ATTN)
#define MLP(s_, p_)                                                                                \
    NORM(s_, p_ "final_layer_norm", TG_ROLE_NORM2_W),                                              \
        LINEAR(s_, p_ "fc1", TG_ROLE_UP_W, TG_INIT_NORMAL, TG_DIM_MLP, W),                         \
        LINEAR(s_, p_ "fc2", TG_ROLE_DOWN_W, TG_INIT_RESIDUAL, W, TG_DIM_MLP)
#define CROSS(s_, p_)                                                                              \
    NORM(s_, p_ "encoder_attn_layer_norm", TG_ROLE_CROSS_NORM_W),                                  \
        LINEAR(s_, p_ "encoder_attn.q_proj", TG_ROLE_CROSS_Q_W, TG_INIT_NORMAL, TG_DIM_ATTN, W),   \
        TG_ROW_IN(s_, p_ "encoder_attn.k_proj.weight", TG_ROLE_CROSS_K_W, TG_INIT_NORMAL,          \
                  TG_DIM_KV, W),                                                                   \
        TG_ROW_IN(s_, p_ "encoder_attn.v_proj.weight", TG_ROLE_CROSS_V_W, TG_INIT_NORMAL,          \
                  TG_DIM_KV, W),                                                                   \
        TG_ROW_IN(s_, p_ "encoder_attn.k_proj.bias", TG_ROLE_CROSS_K_B, TG_INIT_ZERO, TG_DIM_KV),  \
        TG_ROW_IN(s_, p_ "encoder_attn.v_proj.bias", TG_ROLE_CROSS_V_B, TG_INIT_ZERO, TG_DIM_KV),  \
        LINEAR(s_, p_ "encoder_attn.out_proj", TG_ROLE_CROSS_OUT_W, TG_INIT_RESIDUAL, W,           \
               TG_DIM_ATTN)
/* Around the layers of a stack: pos_ is its row of positions. */
#define TOP(s_, p_, pos_)                                                                          \
    pos_, NORM_IF(s_, embed_norm, p_ "layernorm_embedding", TG_ROLE_EMBED_NORM_W),                 \
        NORM_IF(s_, final_norm, p_ "layer_norm", TG_ROLE_FINAL_W)
#define POSITIONS(s_, p_)                                                                          \
    TG_ROW_IN(s_, p_ "embed_positions.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL,                  \
              TG_DIM_POSITIONS, W)
#define WAVES(s_, p_)                                                                              \
    TG_ROW_FIXED(s_, p_ "embed_positions.weight", TG_ROLE_POS_EMBED, TG_INIT_WAVES,                \
                 TG_DIM_POSITIONS, W)
#define EMBED(s_, p_)                                                                              \
    TG_ROW_IN_IF(s_, split_embed, p_ "embed_tokens.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL,   \
                 TG_DIM_VOCAB, W)
#define E "model.encoder."
#define D "model.decoder."
#define MAIN TG_STACK_MAIN
#define ENC TG_STACK_ENCODER
#define TENSORS(positions_)                                                                        \
    TG_ROW_IN_UNLESS(MAIN, split_embed, "model.shared.weight", TG_ROLE_TOKEN_EMBED,                \
                     TG_INIT_NORMAL, TG_DIM_VOCAB, W),                                             \
        EMBED(ENC, E), TOP(ENC, E, positions_(ENC, E)), SELF(ENC, E "layers.%d."),                 \
        MLP(ENC, E "layers.%d."), EMBED(MAIN, D), TOP(MAIN, D, positions_(MAIN, D)),               \
        SELF(MAIN, D "layers.%d."), CROSS(MAIN, D "layers.%d."), MLP(MAIN, D "layers.%d."),        \
        TG_ROW("lm_head.weight", TG_ROLE_HEAD_W, TG_INIT_NORMAL, TG_DIM_VOCAB, W),                 \
        TG_ROW_FIXED(MAIN, "final_logits_bias", TG_ROLE_HEAD_B, TG_INIT_ZERO, TG_DIM_ONE,          \
                     TG_DIM_VOCAB),                                                                \
    {                                                                                              \
        0                                                                                          \
    }
static const tg_family_tensor learned[] = {TENSORS(POSITIONS)};
static const tg_family_tensor waves[] = {TENSORS(WAVES)};

static const char *const ignored[] = {"encoder.version", "decoder.version", NULL};
static const char *const aliases[] = {"model.shared.weight", E "embed_tokens.weight",
                                      D "embed_tokens.weight", NULL};

#undef ENC
#undef MAIN
#undef D
#undef E
#undef W

/* vocab_size is the decoder's; Marian may give the encoder another. */
#define KEYS(vocab_, positions_, width_, enc_layers_, layers_, ffn_, heads_)                       \
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, vocab_),                                      \
        TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, positions_),              \
        TG_SIZE("d_model", "hidden_size", width, 1 << 16, width_),                                 \
        TG_SIZE("encoder_layers", "num_hidden_layers", enc_layers, TG_MAX_LAYERS, enc_layers_),    \
        TG_SIZE("encoder_ffn_dim", NULL, enc_mlp_width, 1 << 18, ffn_),                            \
        TG_SIZE("encoder_attention_heads", "num_attention_heads", enc_heads, 1024, heads_),        \
        TG_SIZE("decoder_layers", NULL, n_layers, TG_MAX_LAYERS, layers_),                         \
        TG_SIZE("decoder_ffn_dim", NULL, mlp_width, 1 << 18, ffn_),                                \
        TG_SIZE("decoder_attention_heads", NULL, n_heads, 1024, heads_),                           \
        TG_ACTIVATION("activation_function", TG_ACT_GELU),                                         \
        TG_FLAG("tie_word_embeddings", tied_head, 1)
#define START(id_) TG_TOKEN("decoder_start_token_id", start_id, id_), TG_KEYS_END
static const tg_key bart_keys[] = {KEYS(50265, 1024, 1024, 12, 12, 4096, 16), TG_TOKENS(0, 2, 1),
                                   START(2)};
static const tg_key mbart_keys[] = {KEYS(50265, 1024, 1024, 12, 12, 4096, 16), TG_TOKENS(0, 2, 1),
                                    START(-1)};
#define MARIAN_TOKENS TG_TOKENS(-1, 0, 58100), START(58100)
static const tg_key marian_keys[] = {KEYS(58101, 1024, 1024, 12, 12, 4096, 16), MARIAN_TOKENS};
static const tg_key marian_tokens[] = {MARIAN_TOKENS};
static const tg_key pegasus_keys[] = {KEYS(50265, 1024, 1024, 12, 12, 4096, 16),
                                      TG_TOKENS(-1, 1, 0), START(0)};
static const tg_key blenderbot_keys[] = {KEYS(8008, 128, 2560, 2, 24, 10240, 32),
                                         TG_TOKENS(1, 2, 0), START(1)};
static const tg_key blenderbot_small_keys[] = {KEYS(50265, 512, 512, 8, 8, 2048, 16),
                                               TG_TOKENS(1, 2, 0), START(1)};

typedef struct traits {
    const tg_key *keys;
    const char *class_name;
    bool norm_after, embed_norm, norm_first, final_norm;
    int pos_offset;
} traits;

static tg_status head_sizes(int width, int heads, int *head_dim, const char *key,
                            const tg_config_json *c, tg_error *err) {
    if (heads < 1 || width % heads)
        return tg_fail(err, TG_DATA, "%s: %s: %d heads do not divide d_model %d", c->path, key,
                       heads, width);
    *head_dim = width / heads;
    return TG_OK;
}

/* transformers unties all embeddings, or none. */
static tg_status read_shared(tg_arch *a, const tg_config_json *c, const traits *t, tg_error *err) {
    bool scaled = false;
    a->kind = TG_KIND_SEQ2SEQ;
    a->out_in = a->qkv_bias = a->pad_fixed = true;
    a->norm_eps = 1e-5f;
    a->norm_after = t->norm_after;
    a->embed_norm = t->embed_norm;
    a->norm_first = t->norm_first;
    a->final_norm = t->final_norm;
    a->pos_offset = t->pos_offset;
    tg_status st = tg_keys_read(t->keys, a, c, err);
    if (st == TG_OK) st = tg_config_json_bool(c, "scale_embedding", false, &scaled, err);
    if (st == TG_OK)
        st = head_sizes(a->width, a->n_heads, &a->head_dim, "decoder_attention_heads", c, err);
    if (st == TG_OK)
        st =
            head_sizes(a->width, a->enc_heads, &a->enc_head_dim, "encoder_attention_heads", c, err);
    if (st != TG_OK) return st;
    if (scaled) a->embed_scale = (float)sqrt(a->width);
    if (a->start_id < 0) a->start_id = a->bos_id; /* as generate() does */
    if (a->start_id < 0) a->start_id = a->eos_id;
    a->n_kv_heads = a->n_heads;
    a->split_embed = !a->tied_head;
    a->src_vocab = a->vocab_size;
    return TG_OK;
}

static bool write_shared(const tg_arch *a, json_t *o, const traits *t) {
    int failed = 0;
    if (!json_object_get(o, "scale_embedding"))
        failed |= json_object_set_new(o, "scale_embedding", json_boolean(a->embed_scale > 0));
    if (!json_object_get(o, "is_encoder_decoder"))
        failed |= json_object_set_new(o, "is_encoder_decoder", json_true());
    return tg_keys_write(t->keys, a, o, t->class_name) && !failed;
}

/* A decoder's vocabulary and embeddings may be its own. */
static tg_status read_vocabularies(tg_arch *a, const tg_config_json *c, tg_error *err) {
    bool shared = true;
    int size = 0;
    tg_status st = tg_config_json_bool(c, "share_encoder_decoder_embeddings", true, &shared, err);
    if (st == TG_OK)
        st =
            tg_config_json_int(c, "decoder_vocab_size", NULL, 1, 1 << 24, a->src_vocab, &size, err);
    if (st != TG_OK || shared) return st;
    a->split_embed = true;
    a->vocab_size = size;
    st = tg_keys_read(marian_tokens, a, c, err); /* they count the decoder's tokens */
    if (a->start_id < 0) a->start_id = a->bos_id;
    if (a->start_id < 0) a->start_id = a->eos_id;
    return st;
}

static bool write_vocabularies(const tg_arch *a, json_t *o) {
    bool own = (a->split_embed && a->tied_head) || a->src_vocab != a->vocab_size;
    int failed = 0;
    if (!own || json_object_get(o, "vocab_size")) return true;
    failed |= json_object_set_new(o, "vocab_size", json_integer(a->src_vocab));
    failed |= json_object_set_new(o, "decoder_vocab_size", json_integer(a->vocab_size));
    failed |= json_object_set_new(o, "share_encoder_decoder_embeddings", json_false());
    return !failed;
}

#define FAMILY(family_, name_, table_, summary_, read_more_, write_more_, ...)                     \
    static const traits family_##_traits = {family_##_keys, __VA_ARGS__};                          \
    static tg_status read_##family_(tg_arch *a, const tg_config_json *c, tg_error *err) {          \
        tg_status st = read_shared(a, c, &family_##_traits, err);                                  \
        return st == TG_OK ? read_more_ : st;                                                      \
    }                                                                                              \
    static bool write_##family_(const tg_arch *a, json_t *o) {                                     \
        return write_more_ && write_shared(a, o, &family_##_traits);                               \
    }                                                                                              \
    const tg_family tg_family_##family_ = {.name = (name_),                                        \
                                           .summary = (summary_),                                  \
                                           .prefix = "model.",                                     \
                                           .tensors = (table_),                                    \
                                           .ignored = ignored,                                     \
                                           .embed_aliases = aliases,                               \
                                           .read = read_##family_,                                 \
                                           .write = write_##family_}

FAMILY(bart, "bart", learned, "BART: encoder and decoder, norms after the sums", TG_OK, true,
       "BartForConditionalGeneration", .norm_after = true, .embed_norm = true, .pos_offset = 2);
FAMILY(mbart, "mbart", learned, "mBART: as BART, norms before the branches and at the end", TG_OK,
       true, "MBartForConditionalGeneration", .embed_norm = true, .final_norm = true,
       .pos_offset = 2);
FAMILY(marian, "marian", waves, "Marian: as BART, sinusoidal positions",
       read_vocabularies(a, c, err), write_vocabularies(a, o), "MarianMTModel", .norm_after = true);
FAMILY(pegasus, "pegasus", waves, "Pegasus: as mBART, sinusoidal positions", TG_OK, true,
       "PegasusForConditionalGeneration", .final_norm = true);
FAMILY(blenderbot, "blenderbot", learned, "Blenderbot: as mBART", TG_OK, true,
       "BlenderbotForConditionalGeneration", .final_norm = true);
FAMILY(blenderbot_small, "blenderbot-small", learned, "Blenderbot-small: as BART", TG_OK, true,
       "BlenderbotSmallForConditionalGeneration", .norm_after = true, .embed_norm = true,
       .norm_first = true);
