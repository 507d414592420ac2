/* A model family: how its config.json reads and what its tensors are called. The computation is the
 * trunk's (trunk.h), driven by tg_arch and the roles; a family has no code of its own for it.
 * Adding one: a file here and a line in family.c. */
#ifndef TG_NN_FAMILY_H
#define TG_NN_FAMILY_H

#include "common/nn/arch.h"
#include "common/nn/family/config_json.h"
#include "common/nn/params.h"

/* A length of a shape, as a function of the architecture. */
typedef enum tg_dim {
    TG_DIM_NONE,
    TG_DIM_VOCAB,
    TG_DIM_POSITIONS,
    TG_DIM_WIDTH,
    TG_DIM_QKV,  /* (n_heads + 2 n_kv_heads) head_dim */
    TG_DIM_ATTN, /* n_heads head_dim */
    TG_DIM_KV,   /* n_kv_heads head_dim */
    TG_DIM_HEAD, /* head_dim */
    TG_DIM_MLP,
    TG_DIM_HEADS,   /* n_heads */
    TG_DIM_BUCKETS, /* rel_buckets */
    TG_DIM_ONE,
    TG_DIM_EMBED, /* embed_width, or width */
    TG_DIM_TYPES,
    TG_DIM_LABELS,
} tg_dim;

typedef struct tg_family_tensor {
    /* with %d: one per layer; such rows that follow each other are repeated together */
    const char *name;
    tg_param_role role;
    tg_init init;
    tg_dim dims[4];
    size_t when;    /* offset of a bool in tg_arch: the row is there only if it is set; 0: always */
    size_t unless;  /* the same, only if it is not set */
    tg_stack stack; /* whose sizes and number of layers count */
    bool fixed;     /* never trained */
} tg_family_tensor;

/* TG_ROW(name, role, init, dims...); TG_ROW_IF(bool of tg_arch, ...). */
#define TG_ROW(name_, role_, init_, ...)                                                           \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = { __VA_ARGS__ }                 \
    }
#define TG_ROW_IF(field_, name_, role_, init_, ...)                                                \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__},                  \
        .when = offsetof(tg_arch, field_)                                                          \
    }

/* The same of the stack named, TG_STACK_MAIN or TG_STACK_ENCODER. */
#define TG_ROW_IN(stack_, name_, role_, init_, ...)                                                \
    { .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__}, .stack = stack_ }
#define TG_ROW_IN_IF(stack_, field_, name_, role_, init_, ...)                                     \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__},                  \
        .when = offsetof(tg_arch, field_), .stack = stack_                                         \
    }
#define TG_ROW_IN_UNLESS(stack_, field_, name_, role_, init_, ...)                                 \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__},                  \
        .unless = offsetof(tg_arch, field_), .stack = stack_                                       \
    }
#define TG_ROW_UNLESS(field_, name_, role_, init_, ...)                                            \
    TG_ROW_IN_UNLESS(TG_STACK_MAIN, field_, name_, role_, init_, __VA_ARGS__)
#define TG_ROW_IF_UNLESS(field_, unless_, name_, role_, init_, ...)                                \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__},                  \
        .when = offsetof(tg_arch, field_), .unless = offsetof(tg_arch, unless_)                    \
    }
#define TG_ROW_FIXED(stack_, name_, role_, init_, ...)                                             \
    {                                                                                              \
        .name = (name_), .role = (role_), .init = (init_), .dims = {__VA_ARGS__}, .stack = stack_, \
        .fixed = true                                                                              \
    }

typedef struct tg_family {
    const char *name; /* model_type */
    const char *summary;
    const char *prefix;              /* files may leave it off every name */
    const tg_family_tensor *tensors; /* ends with a NULL name */
    /* names (without prefix, %d any layer) of buffers in old files; NULL-terminated */
    const char *const *ignored;
    const char *head_alias; /* another name of the output matrix in files; NULL: none */
    /* further names of the token embeddings, NULL-terminated; NULL: none */
    const char *const *embed_aliases;
    /* whether the head is tied is what the files say: they have none, or the same matrix */
    bool head_by_file;
    tg_status (*read)(tg_arch *arch, const tg_config_json *config, tg_error *err);
    /* Sets the family's keys in the object; keys of other meaning are left as they are. False: out
     * of memory. */
    bool (*write)(const tg_arch *arch, json_t *object);
} tg_family;

/* All families in this build, NULL-terminated. */
const tg_family *const *tg_family_list(void);
const tg_family *tg_family_find(const char *name); /* NULL: none */
/* TG_UNSUPPORTED naming the families there are. */
tg_status tg_family_unknown(const char *name, tg_error *err);

/* Whether the family calls its output matrix so, or with a copy of the token embeddings. */
bool tg_family_is_head(const tg_family *f, const char *name);
/* Whether it is a tensor that makes labels, of a family's classifiers. */
bool tg_family_is_labels(const tg_family *f, const char *name);
bool tg_family_is_embed_alias(const tg_family *f, const char *name);
/* What a name found in a weight file stands for. */
enum { TG_MATCH_UNKNOWN = -1, TG_MATCH_IGNORED = -2 };
/* Index into params, or one of the above. With a tied head, the output matrix is the token embedding.
 */
int tg_family_match(const tg_family *f, const tg_arch *arch, const tg_params *params,
                    const char *name);

extern const tg_family tg_family_bert, tg_family_roberta, tg_family_xlm_roberta,
    tg_family_distilbert, tg_family_albert;
extern const tg_family tg_family_gpt2, tg_family_gpt_neo, tg_family_gptj, tg_family_gpt_neox,
    tg_family_opt, tg_family_bloom, tg_family_llama, tg_family_mistral, tg_family_qwen2,
    tg_family_qwen3, tg_family_gemma, tg_family_gemma2, tg_family_gemma3_text, tg_family_t5,
    tg_family_mt5, tg_family_bart, tg_family_mbart, tg_family_marian, tg_family_pegasus,
    tg_family_blenderbot, tg_family_blenderbot_small;

#endif
