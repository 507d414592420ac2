/* A model's architecture as data: what its family (common/nn/family) reads from config.json. */
#ifndef TG_NN_ARCH_H
#define TG_NN_ARCH_H

#include "common/base/status.h"
#include "common/nn/op/activation.h"

#include <stdbool.h>
#include <stdint.h>

enum { TG_MAX_LAYERS = 1024, TG_ROPE_STRETCHES = 256, TG_LONGEST_TEXT = 1 << 24 };

typedef enum tg_norm { TG_NORM_LAYER, TG_NORM_RMS } tg_norm;

/* What a model is: one stack whose rows see what came before them, one whose rows see each other, or a causal stack that also
 * attends to the states of an encoder stack. */
typedef enum tg_kind { TG_KIND_CAUSAL, TG_KIND_SEQ2SEQ, TG_KIND_ENCODER } tg_kind;

/* How rotary frequencies are stretched to longer texts. */
typedef enum tg_rope_kind {
    TG_ROPE_DEFAULT,
    TG_ROPE_LINEAR,
    TG_ROPE_DYNAMIC, /* the default within the original positions, slower in longer texts */
    TG_ROPE_LLAMA3,
    TG_ROPE_YARN,
    TG_ROPE_LONG, /* stretched otherwise in texts longer than the original positions */
    TG_ROPE_PROPORTIONAL,
} tg_rope_kind;

typedef struct tg_rope {
    int dims;   /* floats of a head that are turned; 0: no rotary positions */
    bool odd;   /* config.json says one less, which is what the waves are spread over */
    bool pairs; /* neighbouring floats form a pair; else one of each half */
    tg_rope_kind kind;
    float theta, factor;
    float excess;                     /* dynamic: factor - 1 */
    int angles;                       /* proportional: pairs that are turned, of the dims / 2 */
    float low_freq, high_freq;        /* llama3 */
    float beta_fast, beta_slow;       /* yarn */
    float attention;                  /* yarn, long: factor on cos and sin */
    bool keep_range;                  /* yarn: the range is not rounded to whole dimensions */
    int original_positions;           /* dynamic, llama3, yarn, long */
    float stretch[TG_ROPE_STRETCHES]; /* long: (dims / 2) of wave lengths, */
    float long_stretch[TG_ROPE_STRETCHES]; /* and of those in longer texts */
} tg_rope;

/* Of how many floats the waves are spread. */
static inline int tg_rope_span(const tg_rope *r) {
    return r->dims - r->odd;
}

/* All zeros where a field is not set: GPT-2's ways. Of a seq2seq model these are the decoder's; the encoder's are tg_arch_encoder's,
 * which differ in what the fields enc_... say. */
typedef struct tg_arch {
    char family[24]; /* model_type: "gpt2" */
    tg_kind kind;
    int n_layers, n_heads, n_kv_heads, head_dim, width, mlp_width;
    int enc_layers, enc_heads, enc_head_dim, enc_mlp_width; /* seq2seq */
    int vocab_size, max_positions;
    int stretched_positions; /* longrope: max_position_embeddings, of which max_positions are the first */
    bool endless; /* positions are computed, not stored: texts may be longer than max_positions */
    bool split_embed; /* seq2seq: the encoder has token embeddings of its own, */
    int src_vocab;    /* of that many tokens */
    float norm_eps;
    bool tied_head;         /* the output matrix is the token embedding */
    bool value_head;        /* has value_head.weight (1, width): a critic, or a shared trunk */
    bool unscaled_attn;     /* scores are not divided by sqrt(head_dim) */
    bool layer_scaled_attn; /* scores are also divided by layer + 1 */

    tg_norm norm;
    float norm_offset; /* added to every weight of an RMS norm */
    bool out_in;       /* linear weights are stored (outputs, inputs) */
    bool parallel;     /* attention and MLP both read the layer's input */
    bool post_norms;   /* what attention and MLP add is normalised first */
    bool norm_after;   /* x = norm(x + f(x)) in place of x + f(norm(x)) */
    bool norm_stream;  /* x = norm(x) + f(norm(x)) */
    bool plain_norms;  /* norms in and behind the layers have neither gain nor bias */
    bool final_norm;  /* there is one behind the last layer; asked by the tables of some families */
    bool embed_norm;  /* embeddings are normalised */
    bool pad_fixed;   /* reading pad_id gives its embedding no gradient */
    int pad_from_end; /* pad_token_id is minus this: torch counts rows from the end, nothing else knows of it; 0: it is not */
    bool norm_first;  /* positions are added behind that norm; a decoder's, not its encoder's */
    float embed_scale; /* on token embeddings; 0: none */
    int pos_offset;    /* row of the position table that belongs to position 0 */
    tg_rope rope;
    tg_rope local_rope; /* of the local layers; dims 0: as the others */
    /* positions count the tokens that are not pad_id, which has the row before position 0 */
    bool skip_pad;
    bool narrow_embed; /* embeddings are embed_width wide, then multiplied to width */
    int embed_width;
    bool wide_positions; /* those of positions are wide: added behind that product */
    bool types;          /* each token also has a type, one of n_types, with an embedding */
    int n_types;
    int n_groups;    /* sets of layer parameters, which layers share; 0: each has its own */
    int inner_group; /* sets that lie side by side in a group of the file; 0: 1 */
    bool alibi;
    int rel_buckets, rel_distance; /* scores get a learned number by distance (T5); 0: none */
    bool qkv_by_head; /* rows of the fused matrix: query, key, value of head 0, then of head 1 */
    bool qk_norm;     /* RMS norm of every query and key head */
    bool qkv_bias, attn_out_bias, mlp_bias;
    float attn_scale;                  /* in place of 1/sqrt(head_dim); 0: none */
    float attn_softcap, logit_softcap; /* 0: none */
    int window; /* keys a query sees in the local layers, itself included; 0: there are none */
    uint64_t local_layers[TG_MAX_LAYERS / 64]; /* bit set */
    tg_act act;
    bool gated;          /* MLP: act(gate) times up */
    bool head_bias;      /* the output matrix has a bias */
    bool pooler_by_file; /* config.json leaves open whether there is a pooler */
    bool pooler;         /* a matrix and pool_act on the state of a text's first token, */
    tg_act pool_act;
    /* from which a last matrix makes n_labels logits; of a causal model from the state of a text's last token, in place of
       an output matrix */
    bool labels;
    int n_labels;
    float logit_scale;              /* on what the output matrix reads; 0: none */
    int32_t start_id;               /* seq2seq: what a decoder's text begins with; -1: none */
    int32_t bos_id, eos_id, pad_id; /* -1: none, or outside the vocabulary */
} tg_arch;

static inline bool tg_arch_is_local(const tg_arch *a, int layer) {
    return a->local_layers[layer / 64] >> layer % 64 & 1;
}

/* The token whose reading gives its embedding no gradient; -1: there is none. */
static inline int32_t tg_arch_fixed_token(const tg_arch *a) {
    if (!a->pad_fixed) return -1;
    return a->pad_from_end ? a->vocab_size - a->pad_from_end : a->pad_id;
}

/* Tokens of the longest text that the model can read; it was trained with up to max_positions. */
static inline int tg_arch_longest(const tg_arch *a) {
    return a->endless ? TG_LONGEST_TEXT : a->max_positions;
}

/* Whether the angle of a position depends on how long the text is. */
static inline bool tg_rope_varies(const tg_rope *r) {
    return r->dims && (r->kind == TG_ROPE_DYNAMIC || r->kind == TG_ROPE_LONG);
}

/* Whether a text of more than max_positions turns from its first token on as no shorter one does. */
static inline bool tg_arch_varies(const tg_arch *a) {
    return tg_rope_varies(&a->rope) || tg_rope_varies(&a->local_rope);
}

/* Whether labels are made of states as narrow as the embeddings (OPT); and the width of what the labels' matrix reads. */
static inline bool tg_arch_judges_narrow(const tg_arch *a) {
    return a->narrow_embed && a->kind == TG_KIND_CAUSAL;
}
static inline int tg_arch_judged_width(const tg_arch *a) {
    return tg_arch_judges_narrow(a) ? a->embed_width : a->width;
}

/* Tokens of the longest text that can be learnt from: beyond that, what is written token by token is not what is read as a whole. */
static inline int tg_arch_trainable(const tg_arch *a) {
    return tg_arch_varies(a) ? a->max_positions : tg_arch_longest(a);
}

/* The architecture of a folder, from its config.json alone: for checks and memory plans. */
tg_status tg_arch_load(tg_arch *arch, const char *folder, tg_error *err) TG_MUST_CHECK;

/* The encoder of a seq2seq model as a model of its own, of kind TG_KIND_ENCODER. */
tg_arch tg_arch_encoder(const tg_arch *arch);

/* TG_DATA, naming the field, when the numbers do not make a model; TG_UNSUPPORTED for an unknown
 * family. */
tg_status tg_arch_check(const tg_arch *arch, tg_error *err) TG_MUST_CHECK;

#endif
