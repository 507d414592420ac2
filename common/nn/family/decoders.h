/* What the families of decoders share: their config.json as a table of keys, rotary settings, windows.
 *
 * A key is read into the field of tg_arch at `field` and written, where config.json does not have it, from there. */
#ifndef TG_NN_FAMILY_DECODERS_H
#define TG_NN_FAMILY_DECODERS_H

#include "common/nn/family/family.h"

typedef enum tg_key_kind {
    TG_KEY_END,
    TG_KEY_INT,   /* field: int; null: 0, for the family to derive */
    TG_KEY_FLOAT, /* float; null: 0 */
    TG_KEY_BOOL,
    TG_KEY_TOKEN, /* int32_t */
    TG_KEY_ACT,   /* tg_act, by Hugging Face's names */
    TG_KEY_ONLY,  /* bool: no value but the default is built; no field */
} tg_key_kind;

typedef struct tg_key {
    tg_key_kind kind;
    const char *key, *alias; /* alias NULL: none */
    size_t field;
    double min, max, def;
} tg_key;

#define TG_FIELD(f) offsetof(tg_arch, f)
#define TG_SIZE(key_, alias_, field_, max_, def_)                                                  \
    { TG_KEY_INT, key_, alias_, TG_FIELD(field_), 1, max_, def_ }
#define TG_NUMBER(key_, field_, max_, def_)                                                        \
    { TG_KEY_FLOAT, key_, NULL, TG_FIELD(field_), 0, max_, def_ }
#define TG_FLAG(key_, field_, def_)                                                                \
    { TG_KEY_BOOL, key_, NULL, TG_FIELD(field_), 0, 1, def_ }
#define TG_TOKEN(key_, field_, def_)                                                               \
    { TG_KEY_TOKEN, key_, NULL, TG_FIELD(field_), 0, 0, def_ }
#define TG_ACTIVATION(key_, def_)                                                                  \
    { TG_KEY_ACT, key_, NULL, TG_FIELD(act), 0, 0, def_ }
#define TG_ONLY(key_, def_)                                                                        \
    { TG_KEY_ONLY, key_, NULL, 0, 0, 1, def_ }
#define TG_TOKENS(bos_, eos_, pad_)                                                                \
    TG_TOKEN("bos_token_id", bos_id, bos_), TG_TOKEN("eos_token_id", eos_id, eos_),                \
        TG_TOKEN("pad_token_id", pad_id, pad_)
#define TG_KEYS_END                                                                                \
    { TG_KEY_END, NULL, NULL, 0, 0, 0, 0 }

/* TG_DATA or TG_UNSUPPORTED naming file, key, expected and found. */
tg_status tg_keys_read(const tg_key *keys, tg_arch *arch, const tg_config_json *config,
                       tg_error *err) TG_MUST_CHECK;
/* Keys that the object lacks, and `architectures` and `model_type`. False: out of memory. */
bool tg_keys_write(const tg_key *keys, const tg_arch *arch, json_t *object, const char *class_name);

/* Activation functions by Hugging Face's names; false: there is none of that name. */
bool tg_act_find(const char *name, tg_act *out);
const char *tg_act_name(tg_act act);
/* The function that `key` names, def where it is absent. TG_UNSUPPORTED: there is none of that name. */
tg_status tg_act_read(const tg_config_json *config, const char *key, tg_act def, tg_act *out,
                      tg_error *err) TG_MUST_CHECK;

/* n_kv_heads, head_dim and mlp_width where config.json left them to be derived; TG_DATA when they do not fit. */
tg_status tg_decoder_sizes(tg_arch *arch, const tg_config_json *config, int mlp_factor,
                           tg_error *err) TG_MUST_CHECK;

/* arch->rope from rope_parameters, rope_scaling, rope_theta and the names of old files; `part` of each head is turned, below 1 unless
 * config.json says otherwise. */
tg_status tg_rope_read(tg_arch *arch, const tg_config_json *config, double part,
                       tg_error *err) TG_MUST_CHECK;
/* The same of models whose local layers have angles of their own, arch->local_rope: rope_parameters by types of layers (Gemma 3). */
tg_status tg_rope_read_types(tg_arch *arch, const tg_config_json *config,
                             tg_error *err) TG_MUST_CHECK;
/* Before tg_keys_write, which would write the positions that are used. */
bool tg_rope_write(const tg_arch *arch, json_t *object);

/* arch->window from `key`: absent def, null 0. */
tg_status tg_window_read(tg_arch *arch, const tg_config_json *config, const char *key, int def,
                         tg_error *err) TG_MUST_CHECK;
static inline void tg_layer_set_local(tg_arch *a, int layer) {
    a->local_layers[layer / 64] |= 1ull << layer % 64;
}
/* Local layers from layer_types. *found: it was there. */
tg_status tg_layer_types_read(tg_arch *arch, const tg_config_json *config, bool *found,
                              tg_error *err) TG_MUST_CHECK;
/* A window that no layer has is none: config.json as written reads the same again. */
void tg_window_settle(tg_arch *arch);
/* sliding_window and layer_types; the latter, unless `types`, only when some layers are local and others are not. */
bool tg_window_write(const tg_arch *arch, json_t *object, bool types);

#endif
