/* Rotary settings in config.json: rope_parameters (transformers 5), or rope_theta and rope_scaling beside it (before), or the
 * names of GPT-NeoX. A setting that would change the angles and is not built is refused by name. */
#include "common/nn/family/decoders.h"
#include "common/nn/family/rope_scaling.h"

#include "common/base/check.h"

#include <string.h>

static const char *const known[] = {"rope_type",        "type",
                                    "rope_theta",       "partial_rotary_factor",
                                    "factor",           "low_freq_factor",
                                    "high_freq_factor", "original_max_position_embeddings",
                                    "beta_fast",        "beta_slow",
                                    "truncate",         "attention_factor",
                                    "mscale",           "mscale_all_dim",
                                    "short_factor",     "long_factor",
                                    "finetuned"}; /* the last has no effect */

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
    if (r->kind == TG_ROPE_DEFAULT || r->kind == TG_ROPE_PROPORTIONAL || turned >= 1) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: partial_rotary_factor: %g with \"%s\" is not built into this version",
                   c->path, (double)turned, tg_rope_kind_name(r->kind));
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
    bool by_types; /* for layers of one type: the top's original_max_position_embeddings is not theirs */
} standard;

/* The factor before it was rounded to f32. */
static double part_of(const tg_config_json *sub, const tg_config_json *top, standard s) {
    const json_t *v = json_object_get(sub->root, "partial_rotary_factor");
    if (!v) v = json_object_get(top->root, s.part_key);
    return json_is_number(v) ? json_number_value(v) : s.part;
}

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
    if (st != TG_OK) return st;
    const double part = part_of(&sub, c, s); /* times a size it is cut: every bit counts */
    r->dims = (int)((double)a->head_dim * (partly ? part : 1));
    r->odd = partly && r->dims % 2 && r->dims < a->head_dim;
    r->dims += r->odd;
    st = tg_rope_scaling_read(a, &sub, s.by_types ? &sub : c, part, err);
    if (st == TG_OK && !partly) st = check_whole(r, turned, c, err);
    if (st != TG_OK) return st;
    if (partly && !r->dims && r->kind == TG_ROPE_DEFAULT)
        return TG_OK; /* heads so small turn not at all */
    if (r->dims < 2 || r->dims % 2 || (r->odd && r->kind == TG_ROPE_YARN))
        return tg_fail(err, TG_DATA,
                       "%s: %d rotary dimensions of a head of %d: expected an even "
                       "number",
                       c->path, tg_rope_span(r), a->head_dim);
    return TG_OK;
}

/* The object of a key, if it is one that says something. */
static json_t *object_of(const json_t *root, const char *key) {
    json_t *v = json_object_get(root, key);
    return json_object_size(v) ? v : NULL;
}

/* Texts longer than the original ones turn by long_factor from their first token on, which a cache of keys made before they grew cannot
 * follow: what decodes and trains ends there. */
static void end_at_original(tg_arch *a) {
    const tg_rope *const ropes[] = {&a->rope, &a->local_rope};
    const int whole = a->max_positions;
    a->endless = true;
    for (int i = 0; i < 2; i++) {
        if (ropes[i]->kind != TG_ROPE_LONG) continue;
        a->stretched_positions = whole;
        a->max_positions = TG_MIN(a->max_positions, ropes[i]->original_positions);
    }
}

tg_status tg_rope_read(tg_arch *a, const tg_config_json *c, double part, tg_error *err) {
    const bool partly = part < 1;
    const standard s = {partly ? "rotary_emb_base" : "rope_theta",
                        partly ? "rotary_pct" : "partial_rotary_factor", 10000, part, false};
    tg_status st = check_objects(c, err);
    if (st != TG_OK) return st;
    json_t *empty = json_object(), *object = object_of(c->root, "rope_scaling");
    if (!object) object = object_of(c->root, "rope_parameters");
    if (!object) object = empty;
    st = empty ? read_angles(a, object, c, s, err) : tg_fail_nomem(err, 64);
    json_decref(empty);
    end_at_original(a);
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

/* transformers knows only the new name of the kind there: by the old one it turns by the default angles, which nobody means. */
static tg_status check_kind_name(const tg_config_json *c, const json_t *scaling, tg_error *err) {
    const char *old = json_string_value(json_object_get(scaling, "type"));
    if (!old || json_object_get(scaling, "rope_type") || !strcmp(old, "default")) return TG_OK;
    return tg_fail(err, TG_UNSUPPORTED,
                   "%s: rope_scaling: type: \"%.40s\" is not built into this version for types of "
                   "layers (rename the key to rope_type)",
                   c->path, old);
}

tg_status tg_rope_read_types(tg_arch *a, const tg_config_json *c, tg_error *err) {
    const standard local = {"rope_local_base_freq", "partial_rotary_factor", 10000, 1, true};
    const standard full = {"rope_theta", "partial_rotary_factor", 1e6, 1, true};
    tg_status st = check_objects(c, err);
    json_t *types = object_of(c->root, "rope_parameters"), *empty = json_object();
    if (st == TG_OK) st = empty ? check_types(c, types, err) : tg_fail_nomem(err, 64);
    if (st == TG_OK) st = check_kind_name(c, object_of(c->root, "rope_scaling"), err);
    json_t *near = object_of(types, "sliding_attention");
    json_t *far = object_of(types ? types : c->root, types ? "full_attention" : "rope_scaling");
    a->rope = (tg_rope){0};
    if (st == TG_OK) st = read_angles(a, near ? near : empty, c, local, err);
    a->local_rope = a->rope;
    a->rope = (tg_rope){0};
    if (st == TG_OK) st = read_angles(a, far ? far : empty, c, full, err);
    json_decref(empty);
    end_at_original(a);
    return st;
}

bool tg_rope_write(const tg_arch *a, json_t *o) {
    static const char *const keys[] = {"rope_parameters", "rope_scaling", "rope_theta",
                                       "rotary_emb_base", "rope_local_base_freq"};
    const char *positions = "max_position_embeddings";
    if (a->stretched_positions && !json_object_get(o, positions) &&
        json_object_set_new(o, positions, json_integer(a->stretched_positions)))
        return false;
    if (!a->rope.dims) return true; /* the default part of heads so small is none */
    for (size_t i = 0; i < TG_COUNT_OF(keys); i++)
        if (json_object_get(o, keys[i])) return true;
    json_t *p = tg_rope_scaling_object(a, &a->rope);
    if (a->local_rope.dims)
        p = json_pack("{s:o*, s:o*}", "full_attention", p, "sliding_attention",
                      tg_rope_scaling_object(a, &a->local_rope));
    return !json_object_set_new(o, "rope_parameters", p);
}
