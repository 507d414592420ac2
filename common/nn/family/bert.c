/* BERT (Devlin et al. 2018; MiniLM has its layers, fewer of them) and RoBERTa (Liu et al. 2019; XLM-RoBERTa differs in its vocabulary): an
 * encoder that is normalised behind each branch, token types, a pooler. RoBERTa counts positions from the one behind its pad token's
 * number. Keys and defaults are those of transformers' BertConfig, RobertaConfig and XLMRobertaConfig. */
#include "common/nn/family/encoders.h"

#define W TG_DIM_WIDTH
#define M TG_DIM_MLP
#define A TG_DIM_ATTN
#define EMBEDDINGS(prefix_)                                                                        \
    TG_ROW(prefix_ "embeddings.word_embeddings.weight", TG_ROLE_TOKEN_EMBED, TG_INIT_NORMAL,       \
           TG_DIM_VOCAB, W),                                                                       \
        TG_ROW(prefix_ "embeddings.position_embeddings.weight", TG_ROLE_POS_EMBED, TG_INIT_NORMAL, \
               TG_DIM_POSITIONS, W),                                                               \
        TG_ROW_IF(types, prefix_ "embeddings.token_type_embeddings.weight", TG_ROLE_TYPE_EMBED,    \
                  TG_INIT_NORMAL, TG_DIM_TYPES, W),                                                \
        TG_NORM_PAIR(prefix_ "embeddings.LayerNorm", TG_ROLE_EMBED_NORM, W)
#define LAYER(h_)                                                                                  \
    TG_ROW(h_ "attention.self.query.weight", TG_ROLE_QKV_W, TG_INIT_NORMAL, A, W),                 \
        TG_ROW(h_ "attention.self.key.weight", TG_ROLE_K_W, TG_INIT_NORMAL, A, W),                 \
        TG_ROW(h_ "attention.self.value.weight", TG_ROLE_V_W, TG_INIT_NORMAL, A, W),               \
        TG_ROW(h_ "attention.self.query.bias", TG_ROLE_QKV_B, TG_INIT_ZERO, A),                    \
        TG_ROW(h_ "attention.self.key.bias", TG_ROLE_K_B, TG_INIT_ZERO, A),                        \
        TG_ROW(h_ "attention.self.value.bias", TG_ROLE_V_B, TG_INIT_ZERO, A),                      \
        TG_PAIR(h_ "attention.output.dense", TG_ROLE_ATTN_OUT, TG_INIT_NORMAL, W, W, A),           \
        TG_NORM_PAIR(h_ "attention.output.LayerNorm", TG_ROLE_NORM1, W),                           \
        TG_PAIR(h_ "intermediate.dense", TG_ROLE_UP, TG_INIT_NORMAL, M, M, W),                     \
        TG_PAIR(h_ "output.dense", TG_ROLE_DOWN, TG_INIT_NORMAL, W, W, M),                         \
        TG_NORM_PAIR(h_ "output.LayerNorm", TG_ROLE_NORM2, W)

static const tg_family_tensor bert_tensors[] = {
    EMBEDDINGS("bert."),
    LAYER("bert.encoder.layer.%d."),
    TG_PAIR_IF(pooler, "bert.pooler.dense", TG_ROLE_POOL, TG_INIT_NORMAL, W, W, W),
    TG_PAIR_IF(labels, "classifier", TG_ROLE_LABELS, TG_INIT_NORMAL, TG_DIM_LABELS, TG_DIM_LABELS,
               W),
    {0},
};

/* The pooler belongs to the classifier when there is one. */
#define BARE_POOLER(name_, role_, ...)                                                             \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = TG_INIT_NORMAL, .dims = {__VA_ARGS__},           \
        .when = offsetof(tg_arch, pooler), .unless = offsetof(tg_arch, labels)                     \
    }
static const tg_family_tensor roberta_tensors[] = {
    EMBEDDINGS("roberta."),
    LAYER("roberta.encoder.layer.%d."),
    BARE_POOLER("roberta.pooler.dense.weight", TG_ROLE_POOL_W, W, W),
    BARE_POOLER("roberta.pooler.dense.bias", TG_ROLE_POOL_B, W),
    TG_PAIR_IF(labels, "classifier.dense", TG_ROLE_POOL, TG_INIT_NORMAL, W, W, W),
    TG_PAIR_IF(labels, "classifier.out_proj", TG_ROLE_LABELS, TG_INIT_NORMAL, TG_DIM_LABELS,
               TG_DIM_LABELS, W),
    {0},
};
#undef W
#undef M
#undef A

/* Buffers of older files, and the heads of pretraining. */
static const char *const bert_ignored[] = {"embeddings.position_ids",
                                           "embeddings.token_type_ids",
                                           "pooler.dense.weight",
                                           "pooler.dense.bias",
                                           "cls.predictions.bias",
                                           "cls.predictions.transform.dense.weight",
                                           "cls.predictions.transform.dense.bias",
                                           "cls.predictions.transform.LayerNorm.weight",
                                           "cls.predictions.transform.LayerNorm.bias",
                                           "cls.predictions.decoder.weight",
                                           "cls.predictions.decoder.bias",
                                           "cls.seq_relationship.weight",
                                           "cls.seq_relationship.bias",
                                           NULL};
static const char *const roberta_ignored[] = {"embeddings.position_ids",
                                              "embeddings.token_type_ids",
                                              "pooler.dense.weight",
                                              "pooler.dense.bias",
                                              "lm_head.bias",
                                              "lm_head.dense.weight",
                                              "lm_head.dense.bias",
                                              "lm_head.layer_norm.weight",
                                              "lm_head.layer_norm.bias",
                                              "lm_head.decoder.weight",
                                              "lm_head.decoder.bias",
                                              NULL};

#define SIZES(vocab_)                                                                              \
    TG_SIZE("vocab_size", NULL, vocab_size, 1 << 24, vocab_),                                      \
        TG_SIZE("hidden_size", NULL, width, 1 << 16, 768),                                         \
        TG_SIZE("num_hidden_layers", NULL, n_layers, TG_MAX_LAYERS, 12),                           \
        TG_SIZE("num_attention_heads", NULL, n_heads, 1024, 12),                                   \
        TG_SIZE("intermediate_size", NULL, mlp_width, 1 << 18, 3072),                              \
        TG_SIZE("max_position_embeddings", NULL, max_positions, 1 << 24, 512),                     \
        TG_SIZE("type_vocab_size", NULL, n_types, 1 << 16, 2),                                     \
        TG_ACTIVATION("hidden_act", TG_ACT_GELU), TG_NUMBER("layer_norm_eps", norm_eps, 1, 1e-12), \
        TG_ONLY("is_decoder", 0), TG_ONLY("add_cross_attention", 0)
static const tg_key bert_keys[] = {SIZES(30522), TG_TOKENS(-1, -1, 0), TG_KEYS_END};
static const tg_key roberta_keys[] = {SIZES(50265), TG_TOKENS(0, 2, 1), TG_KEYS_END};
static const tg_key xlm_roberta_keys[] = {SIZES(30522), TG_TOKENS(0, 2, 1), TG_KEYS_END};

static tg_status read_bert(tg_arch *a, const tg_config_json *c, tg_error *err) {
    a->pool_act = TG_ACT_TANH;
    return tg_encoder_read(bert_keys, a, c, "Bert", err);
}

static bool write_bert(const tg_arch *a, json_t *o) {
    return tg_encoder_write(bert_keys, a, o, "Bert");
}

/* max_position_embeddings counts the rows of the table, of which those up to the pad token's number are not used. */
static tg_status read_like_roberta(const tg_key *keys, const char *classes, tg_arch *a,
                                   const tg_config_json *c, tg_error *err) {
    a->pool_act = TG_ACT_TANH;
    tg_status st = tg_encoder_read(keys, a, c, classes, err);
    if (st != TG_OK) return st;
    if (a->pad_id < 0)
        return tg_fail(err, TG_DATA, "%s: pad_token_id: missing; positions are counted from it",
                       c->path);
    a->skip_pad = true;
    a->pos_offset = a->pad_id + 1;
    a->max_positions -= a->pos_offset;
    if (a->max_positions < 1)
        return tg_fail(err, TG_DATA,
                       "%s: max_position_embeddings: %d leaves none behind pad_token_id %d",
                       c->path, a->max_positions + a->pos_offset, a->pad_id);
    return TG_OK;
}

static bool write_like_roberta(const tg_key *keys, const char *classes, const tg_arch *a,
                               json_t *o) {
    if (json_object_set_new(o, "max_position_embeddings",
                            json_integer(a->max_positions + a->pos_offset)))
        return false;
    return tg_encoder_write(keys, a, o, classes);
}

static tg_status read_roberta(tg_arch *a, const tg_config_json *c, tg_error *err) {
    return read_like_roberta(roberta_keys, "Roberta", a, c, err);
}

static bool write_roberta(const tg_arch *a, json_t *o) {
    return write_like_roberta(roberta_keys, "Roberta", a, o);
}

static tg_status read_xlm_roberta(tg_arch *a, const tg_config_json *c, tg_error *err) {
    return read_like_roberta(xlm_roberta_keys, "XLMRoberta", a, c, err);
}

static bool write_xlm_roberta(const tg_arch *a, json_t *o) {
    return write_like_roberta(xlm_roberta_keys, "XLMRoberta", a, o);
}

const tg_family tg_family_bert = {
    .name = "bert",
    .summary = "BERT, MiniLM: encoder, norms behind each branch, token types, pooler, labels",
    .prefix = "bert.",
    .tensors = bert_tensors,
    .ignored = bert_ignored,
    .read = read_bert,
    .write = write_bert,
};

const tg_family tg_family_roberta = {
    .name = "roberta",
    .summary = "RoBERTa: as BERT, with positions counted from behind the pad token",
    .prefix = "roberta.",
    .tensors = roberta_tensors,
    .ignored = roberta_ignored,
    .read = read_roberta,
    .write = write_roberta,
};

const tg_family tg_family_xlm_roberta = {
    .name = "xlm-roberta",
    .summary = "XLM-RoBERTa: as RoBERTa, with a vocabulary of many languages",
    .prefix = "roberta.",
    .tensors = roberta_tensors,
    .ignored = roberta_ignored,
    .read = read_xlm_roberta,
    .write = write_xlm_roberta,
};
