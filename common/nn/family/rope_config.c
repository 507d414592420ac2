/* Rotary settings in config.json: rope_parameters (transformers 5), or rope_theta and rope_scaling beside it (before), or the
 * names of GPT-NeoX. A setting that would change the angles and is not built is refused by name. */
#include "common/nn/family/decoders.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = {"default", "linear", "dynamic", "llama3", "yarn"};

static const char *const known[] = {"rope_type",        "type",
                                    "rope_theta",       "partial_rotary_factor",
                                    "factor",           "low_freq_factor",
                                    "high_freq_factor", "original_max_position_embeddings",
                                    "beta_fast",        "beta_slow",
                                    "truncate",         "attention_factor",
                                    "mscale",           "mscale_all_dim"};

static tg_status check_keys(const tg_config_json *sub, tg_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach(sub->root, key, value) {
        bool found = false;
        for (size_t i = 0; i < TG_COUNT_OF(known); i++) found = found || !strcmp(known[i], key);
        if (!found || json_is_object(value))
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: rope_parameters: %.60s is not built into this version", sub->path,
                           key);
    }
    return TG_OK;
}

static tg_status read_kind(tg_rope *r, const tg_config_json *sub, tg_error *err) {
    const char *name;
    bool old = !json_object_get(sub->root, "rope_type");
    tg_status st = tg_config_json_str(sub, old ? "type" : "rope_type", "default", &name, err);
    if (st != TG_OK) return st;
    for (size_t i = 0; i < TG_COUNT_OF(kinds); i++)
        if (!strcmp(kinds[i], name)) {
            r->kind = (tg_rope_kind)i;
            return TG_OK;
        }
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: rope_type: \"%.40s\" is not built into this version (there are: default, "
                   "linear, dynamic, llama3, yarn)",
                   sub->path, name);
}

static double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* Peng et al. 2023, section 3.4, as transformers infers it. */
static tg_status read_yarn(tg_rope *r, const tg_config_json *sub, tg_error *err) {
    float attention = 0, mscale = 0, all = 0;
    bool truncate = true;
    tg_status st = tg_config_json_float(sub, "attention_factor", 0, 1e6, 0, &attention, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "mscale", 0, 1e6, 0, &mscale, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "mscale_all_dim", 0, 1e6, 0, &all, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "beta_fast", 0, 1e6, 32, &r->beta_fast, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "beta_slow", 0, 1e6, 1, &r->beta_slow, err);
    if (st == TG_OK) st = tg_config_json_bool(sub, "truncate", true, &truncate, err);
    if (st != TG_OK) return st;
    if (r->beta_fast <= 0) r->beta_fast = 32;
    if (r->beta_slow <= 0) r->beta_slow = 1;
    r->keep_range = !truncate;
    double factor = (double)r->factor;
    if (attention > 0)
        r->attention = attention;
    else if (mscale > 0 && all > 0)
        r->attention = (float)(magnitude(factor, (double)mscale) / magnitude(factor, (double)all));
    else
        r->attention = (float)magnitude(factor, 1);
    return TG_OK;
}

/* One that has no default. */
static tg_status read_number(const tg_config_json *sub, const char *key, const char *kind,
                             float *out, tg_error *err) {
    if (!json_is_number(json_object_get(sub->root, key)))
        return tg_fail(err, TG_DATA, "%s: rope_parameters: %s: expected a number for \"%s\"",
                       sub->path, key, kind);
    return tg_config_json_float(sub, key, 1e-3, 1e6, 1, out, err);
}

static tg_status read_llama3(tg_rope *r, const tg_config_json *sub, tg_error *err) {
    tg_status st = read_number(sub, "low_freq_factor", "llama3", &r->low_freq, err);
    if (st == TG_OK) st = read_number(sub, "high_freq_factor", "llama3", &r->high_freq, err);
    if (st == TG_OK && r->high_freq <= r->low_freq)
        st = tg_fail(err, TG_DATA,
                     "%s: rope_parameters: high_freq_factor %g is not above "
                     "low_freq_factor %g",
                     sub->path, (double)r->high_freq, (double)r->low_freq);
    return st;
}

static tg_status read_scaling(tg_arch *a, const tg_config_json *sub, const tg_config_json *top,
                              tg_error *err) {
    tg_rope *r = &a->rope;
    tg_status st = read_kind(r, sub, err);
    if (st != TG_OK || r->kind == TG_ROPE_DEFAULT) return st;
    if (r->kind == TG_ROPE_LLAMA3 || r->kind == TG_ROPE_YARN) {
        const char *key = "original_max_position_embeddings";
        const tg_config_json *from = json_object_get(top->root, key) ? top : sub;
        st = tg_config_json_int(from, key, NULL, 1, 1 << 24, a->max_positions,
                                &r->original_positions, err);
    }
    if (st == TG_OK && r->kind == TG_ROPE_YARN &&
        json_is_null(json_object_get(sub->root, "factor")))
        r->factor = (float)((double)a->max_positions / r->original_positions);
    else if (st == TG_OK)
        st = read_number(sub, "factor", kinds[r->kind], &r->factor, err);
    if (st == TG_OK && r->kind == TG_ROPE_LLAMA3) st = read_llama3(r, sub, err);
    if (st == TG_OK && r->kind == TG_ROPE_YARN) st = read_yarn(r, sub, err);
    return st;
}

/* From rope_parameters, or from the top of config.json, where GPT-NeoX has another name for it and reads no other. */
static tg_status read_either(const tg_config_json *sub, const tg_config_json *top, const char *key,
                             const char *top_key, double min, double max, double def, float *out,
                             tg_error *err) {
    bool inside = json_object_get(sub->root, key) != NULL;
    return tg_config_json_float(inside ? sub : top, inside ? key : top_key, min, max, def, out,
                                err);
}

/* transformers turns whole heads where GPT-NeoX turns a part: with the default angles it ignores the key, with others it fails. */
static tg_status check_whole(const tg_rope *r, float turned, const tg_config_json *c,
                             tg_error *err) {
    if (r->kind == TG_ROPE_DEFAULT || turned >= 1) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: partial_rotary_factor: %g with \"%s\" is not built into this version",
                   c->path, (double)turned, kinds[r->kind]);
}

/* Taken for none they would be another model. */
static tg_status check_objects(const tg_config_json *c, tg_error *err) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < TG_COUNT_OF(keys); i++) {
        const json_t *v = json_object_get(c->root, keys[i]);
        if (v && !json_is_null(v) && !json_is_object(v))
            return tg_fail(err, TG_DATA, "%s: %s: expected an object", c->path, keys[i]);
    }
    return TG_OK;
}

/* What a part of config.json is called at its top, and what counts where it is not there. */
typedef struct standard {
    const char *theta_key, *part_key;
    double theta, part;
} standard;

/* a->rope from one object of settings. */
static tg_status read_angles(tg_arch *a, json_t *object, const tg_config_json *c, standard s,
                             tg_error *err) {
    tg_rope *r = &a->rope;
    const tg_config_json sub = {c->path, object};
    const bool partly = s.part < 1;
    float turned = 1;
    tg_status st = check_keys(&sub, err);
    if (st == TG_OK)
        st = read_either(&sub, c, "rope_theta", s.theta_key, 1, 1e12, s.theta, &r->theta, err);
    if (st == TG_OK)
        st = read_either(&sub, c, "partial_rotary_factor", s.part_key, 1e-6, 1, s.part, &turned,
                         err);
    if (st == TG_OK) st = read_scaling(a, &sub, c, err);
    if (st == TG_OK && !partly) st = check_whole(r, turned, c, err);
    if (st != TG_OK) return st;
    if (!partly) turned = 1;
    r->dims = (int)((double)a->head_dim * (double)turned + 1e-6);
    if (r->dims < 2 || r->dims % 2)
        return tg_fail(err, TG_DATA,
                       "%s: %d rotary dimensions of a head of %d: expected an even "
                       "number",
                       c->path, r->dims, a->head_dim);
    return TG_OK;
}

/* The object of a key, if it is one that says something. */
static json_t *object_of(const json_t *root, const char *key) {
    json_t *v = json_object_get(root, key);
    return json_object_size(v) ? v : NULL;
}

tg_status tg_rope_read(tg_arch *a, const tg_config_json *c, double part, tg_error *err) {
    const bool partly = part < 1;
    const standard s = {partly ? "rotary_emb_base" : "rope_theta",
                        partly ? "rotary_pct" : "partial_rotary_factor", 10000, part};
    tg_status st = check_objects(c, err);
    if (st != TG_OK) return st;
    json_t *empty = json_object(), *object = object_of(c->root, "rope_scaling");
    if (!object) object = object_of(c->root, "rope_parameters");
    if (!object) object = empty;
    st = empty ? read_angles(a, object, c, s, err) : tg_fail_nomem(err, 64);
    json_decref(empty);
    return st;
}

static tg_status check_types(const tg_config_json *c, json_t *types, tg_error *err) {
    const char *key;
    json_t *value;
    if (types && object_of(c->root, "rope_scaling"))
        return tg_fail(err, TG_UNSUPPORTED,
                       "%s: rope_scaling beside rope_parameters is not built into this version",
                       c->path);
    json_object_foreach(types, key, value) {
        if (strcmp(key, "full_attention") && strcmp(key, "sliding_attention"))
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: rope_parameters: %.60s is not built into this version (there are: "
                           "full_attention, sliding_attention)",
                           c->path, key);
        if (!json_is_object(value) && !json_is_null(value))
            return tg_fail(err, TG_DATA, "%s: rope_parameters: %s: expected an object", c->path,
                           key);
        if (json_is_false(json_object_get(value, "truncate"))) /* which transformers overlooks */
            return tg_fail(err, TG_UNSUPPORTED,
                           "%s: rope_parameters: %s: truncate: false is not built into this "
                           "version for types of layers",
                           c->path, key);
    }
    return TG_OK;
}

tg_status tg_rope_read_types(tg_arch *a, const tg_config_json *c, tg_error *err) {
    const standard local = {"rope_local_base_freq", "partial_rotary_factor", 10000, 1};
    const standard full = {"rope_theta", "partial_rotary_factor", 1e6, 1};
    tg_status st = check_objects(c, err);
    json_t *types = object_of(c->root, "rope_parameters"), *empty = json_object();
    if (st == TG_OK) st = empty ? check_types(c, types, err) : tg_fail_nomem(err, 64);
    json_t *near = object_of(types, "sliding_attention");
    json_t *far = object_of(types ? types : c->root, types ? "full_attention" : "rope_scaling");
    a->rope = (tg_rope){0};
    if (st == TG_OK) st = read_angles(a, near ? near : empty, c, local, err);
    a->local_rope = a->rope;
    a->rope = (tg_rope){0};
    if (st == TG_OK) st = read_angles(a, far ? far : empty, c, full, err);
    json_decref(empty);
    return st;
}

/* NULL: out of memory. */
static json_t *angles_object(const tg_arch *a, const tg_rope *r) {
    json_t *p =
        json_pack("{s:s, s:f, s:f}", "rope_type", kinds[r->kind], "rope_theta", (double)r->theta,
                  "partial_rotary_factor", (double)r->dims / (double)a->head_dim);
    int failed = p == NULL;
    if (p && r->kind != TG_ROPE_DEFAULT)
        failed |= json_object_set_new(p, "factor", json_real((double)r->factor));
    if (p && r->original_positions)
        failed |= json_object_set_new(p, "original_max_position_embeddings",
                                      json_integer(r->original_positions));
    if (p && r->kind == TG_ROPE_LLAMA3) {
        failed |= json_object_set_new(p, "low_freq_factor", json_real((double)r->low_freq));
        failed |= json_object_set_new(p, "high_freq_factor", json_real((double)r->high_freq));
    }
    if (p && r->kind == TG_ROPE_YARN) {
        failed |= json_object_set_new(p, "beta_fast", json_real((double)r->beta_fast));
        failed |= json_object_set_new(p, "beta_slow", json_real((double)r->beta_slow));
        failed |= json_object_set_new(p, "attention_factor", json_real((double)r->attention));
        failed |= json_object_set_new(p, "truncate", json_boolean(!r->keep_range));
    }
    if (!failed) return p;
    json_decref(p);
    return NULL;
}

bool tg_rope_write(const tg_arch *a, json_t *o) {
    static const char *const keys[] = {"rope_parameters", "rope_scaling", "rope_theta",
                                       "rotary_emb_base", "rope_local_base_freq"};
    for (size_t i = 0; i < TG_COUNT_OF(keys); i++)
        if (json_object_get(o, keys[i])) return true;
    json_t *p = angles_object(a, &a->rope);
    if (a->local_rope.dims)
        p = json_pack("{s:o*, s:o*}", "full_attention", p, "sliding_attention",
                      angles_object(a, &a->local_rope));
    return !json_object_set_new(o, "rope_parameters", p);
}
