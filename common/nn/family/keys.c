/* Tables of config.json keys: reading, writing what is missing. */
#include "common/nn/family/decoders.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    tg_act act;
} acts[] = {
    {"gelu_new", TG_ACT_GELU_TANH},
    {"gelu_pytorch_tanh", TG_ACT_GELU_TANH},
    {"gelu_fast", TG_ACT_GELU_TANH},
    {"gelu_accurate", TG_ACT_GELU_TANH},
    {"gelu_python_tanh", TG_ACT_GELU_TANH},
    {"gelu", TG_ACT_GELU},
    {"gelu_python", TG_ACT_GELU},
    {"relu", TG_ACT_RELU},
    {"silu", TG_ACT_SILU},
    {"swish", TG_ACT_SILU},
    {"quick_gelu", TG_ACT_QUICK_GELU},
    {"tanh", TG_ACT_TANH},
};

static void *field(tg_arch *a, const tg_key *k) {
    return (char *)a + k->field;
}

const char *tg_act_name(tg_act act) {
    for (size_t i = 0; i < TG_COUNT_OF(acts); i++)
        if (acts[i].act == act) return acts[i].name;
    TG_UNREACHABLE();
}

bool tg_act_find(const char *name, tg_act *out) {
    for (size_t i = 0; i < TG_COUNT_OF(acts); i++)
        if (!strcmp(acts[i].name, name)) {
            *out = acts[i].act;
            return true;
        }
    return false;
}

tg_status tg_act_read(const tg_config_json *c, const char *key, tg_act def, tg_act *out,
                      tg_error *err) {
    const char *name;
    tg_status st = tg_config_json_str(c, key, tg_act_name(def), &name, err);
    if (st != TG_OK) return st;
    if (tg_act_find(name, out)) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: %s: \"%.40s\" is not built into this version (there are: gelu, gelu_new, "
                   "gelu_pytorch_tanh, relu, silu, quick_gelu, tanh)",
                   c->path, key, name);
}

static tg_status read_only(const tg_key *k, const tg_config_json *c, tg_error *err) {
    bool value;
    tg_status st = tg_config_json_bool(c, k->key, k->def != 0, &value, err);
    if (st == TG_OK && value != (k->def != 0))
        st = tg_fail(err, TG_UNSUPPORTED, "%s: %s: %s is not built into this version", c->path,
                     k->key, value ? "true" : "false");
    return st;
}

static tg_status read_key(const tg_key *k, tg_arch *a, const tg_config_json *c, tg_error *err) {
    switch (k->kind) {
    case TG_KEY_INT: {
        bool none = json_is_null(json_object_get(c->root, k->key));
        return tg_config_json_int(c, k->key, k->alias, (int64_t)k->min, (int64_t)k->max,
                                  none ? 0 : (int64_t)k->def, field(a, k), err);
    }
    case TG_KEY_FLOAT: {
        bool none = json_is_null(json_object_get(c->root, k->key));
        return tg_config_json_float(c, k->key, k->min, k->max, none ? 0 : k->def, field(a, k), err);
    }
    case TG_KEY_BOOL: return tg_config_json_bool(c, k->key, k->def != 0, field(a, k), err);
    case TG_KEY_TOKEN:
        return tg_config_json_token(c, k->key, (int64_t)k->def, a->vocab_size, field(a, k), err);
    case TG_KEY_ACT: return tg_act_read(c, k->key, (tg_act)k->def, &a->act, err);
    case TG_KEY_ONLY: return read_only(k, c, err);
    case TG_KEY_END: break;
    }
    TG_UNREACHABLE();
}

tg_status tg_keys_read(const tg_key *keys, tg_arch *a, const tg_config_json *c, tg_error *err) {
    tg_status st = TG_OK;
    for (; keys->kind != TG_KEY_END && st == TG_OK; keys++) st = read_key(keys, a, c, err);
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

static json_t *value_of(const tg_key *k, const tg_arch *a) {
    const void *at = (const char *)a + k->field;
    switch (k->kind) {
    case TG_KEY_INT: return json_integer(*(const int *)at);
    case TG_KEY_FLOAT: return json_real(shortest(*(const float *)at));
    case TG_KEY_BOOL: return json_boolean(*(const bool *)at);
    case TG_KEY_TOKEN:
        return *(const int32_t *)at < 0 ? json_null() : json_integer(*(const int32_t *)at);
    case TG_KEY_ACT: return json_string(tg_act_name(a->act));
    case TG_KEY_ONLY: return json_boolean(k->def != 0);
    case TG_KEY_END: break;
    }
    TG_UNREACHABLE();
}

bool tg_keys_write(const tg_key *keys, const tg_arch *a, json_t *o, const char *class_name) {
    int failed = 0;
    for (; keys->kind != TG_KEY_END; keys++) {
        if (json_object_get(o, keys->key) || (keys->alias && json_object_get(o, keys->alias)))
            continue;
        failed |= json_object_set_new(o, keys->key, value_of(keys, a));
    }
    failed |= json_object_set_new(o, "architectures", json_pack("[s]", class_name));
    failed |= json_object_set_new(o, "model_type", json_string(a->family));
    failed |= json_object_set_new(o, "torch_dtype", json_string("float32"));
    return !failed;
}

tg_status tg_decoder_sizes(tg_arch *a, const tg_config_json *c, int mlp_factor, tg_error *err) {
    if (!a->n_kv_heads) a->n_kv_heads = a->n_heads;
    if (!a->mlp_width) a->mlp_width = mlp_factor * a->width;
    if (a->head_dim) return TG_OK;
    if (a->n_heads < 1 || a->width % a->n_heads)
        return tg_fail(err, TG_DATA, "%s: width %d is not a multiple of the %d attention heads",
                       c->path, a->width, a->n_heads);
    a->head_dim = a->width / a->n_heads;
    return TG_OK;
}
