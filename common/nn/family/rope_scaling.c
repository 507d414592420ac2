/* How rotary angles are stretched to longer texts. */
#include "common/nn/family/rope_scaling.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = {"default", "linear",   "dynamic",     "llama3",
                                    "yarn",    "longrope", "proportional"};

const char *tg_rope_kind_name(tg_rope_kind kind) {
    return kinds[kind];
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
                   "linear, dynamic, llama3, yarn, longrope, proportional)",
                   sub->path, name);
}

static double magnitude(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* *out: 0 where it is to be inferred. Of a 0 in the file nothing would be left to attend to. */
static tg_status read_attention(const tg_config_json *sub, float *out, tg_error *err) {
    return tg_config_json_float(sub, "attention_factor", 1e-6, 1e6, 0, out, err);
}

/* Peng et al. 2023, section 3.4, as transformers infers it. */
static tg_status read_yarn(tg_rope *r, const tg_config_json *sub, tg_error *err) {
    float attention = 0, mscale = 0, all = 0;
    bool truncate = !json_is_null(json_object_get(sub->root, "truncate")); /* null is no */
    tg_status st = read_attention(sub, &attention, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "mscale", 0, 1e6, 0, &mscale, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "mscale_all_dim", 0, 1e6, 0, &all, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "beta_fast", 0, 1e6, 32, &r->beta_fast, err);
    if (st == TG_OK) st = tg_config_json_float(sub, "beta_slow", 0, 1e6, 1, &r->beta_slow, err);
    if (st == TG_OK) st = tg_config_json_bool(sub, "truncate", truncate, &truncate, err);
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

/* One number for each pair of dimensions. */
static tg_status read_stretches(const tg_rope *r, const tg_config_json *sub, const char *key,
                                float *out, tg_error *err) {
    const json_t *list = json_object_get(sub->root, key);
    const int pairs = r->dims / 2;
    if (!json_is_array(list) || json_array_size(list) != (size_t)pairs || pairs > TG_ROPE_STRETCHES)
        return tg_fail(err, TG_DATA, "%s: rope_parameters: %s: expected a list of %d numbers",
                       sub->path, key, pairs);
    for (int i = 0; i < pairs; i++) {
        const double x = json_number_value(json_array_get(list, (size_t)i));
        if (!(x > 1e-6 && x < 1e6))
            return tg_fail(err, TG_DATA, "%s: rope_parameters: %s[%d]: expected a number above 0",
                           sub->path, key, i);
        out[i] = (float)x;
    }
    return TG_OK;
}

/* Ding et al. 2024, as transformers infers it. */
static tg_status read_longrope(tg_rope *r, const tg_config_json *sub, tg_error *err) {
    const double factor = (double)r->factor, original = r->original_positions;
    float attention = 0;
    tg_status st = read_stretches(r, sub, "short_factor", r->stretch, err);
    if (st == TG_OK) st = read_stretches(r, sub, "long_factor", r->long_stretch, err);
    if (st == TG_OK) st = read_attention(sub, &attention, err);
    if (st != TG_OK) return st;
    r->attention = attention;
    if (attention <= 0 && original < 2)
        return tg_fail(err, TG_DATA,
                       "%s: rope_parameters: original_max_position_embeddings: %g gives no "
                       "attention_factor: expected 2 or more",
                       sub->path, original);
    if (attention <= 0)
        r->attention = factor <= 1 ? 1 : (float)sqrt(1 + log(factor) / log(original));
    return TG_OK;
}

/* emozilla's NTK scaling; the exponent of its base is dims / (dims - 2). */
static tg_status read_dynamic(tg_arch *a, const tg_config_json *sub, tg_error *err) {
    if (tg_rope_span(&a->rope) == 2)
        return tg_fail(err, TG_DATA,
                       "%s: rope_parameters: \"dynamic\" of 2 rotary dimensions: expected more",
                       sub->path);
    a->rope.original_positions = a->max_positions;
    a->rope.excess = (float)(json_number_value(json_object_get(sub->root, "factor")) - 1);
    return TG_OK;
}

/* Of each head the pairs that turn fastest are turned, the others not at all. */
static tg_status read_proportional(tg_arch *a, const tg_config_json *sub, double part,
                                   tg_error *err) {
    a->rope.dims = a->head_dim;
    a->rope.odd = false;
    a->rope.angles = (int)floor(part * a->head_dim / 2);
    return tg_config_json_float(sub, "factor", 1e-3, 1e6, 1, &a->rope.factor, err);
}

tg_status tg_rope_scaling_read(tg_arch *a, const tg_config_json *sub, const tg_config_json *top,
                               double part, tg_error *err) {
    tg_rope *r = &a->rope;
    tg_status st = read_kind(r, sub, err);
    if (st != TG_OK || r->kind == TG_ROPE_DEFAULT) return st;
    if (r->kind == TG_ROPE_PROPORTIONAL) return read_proportional(a, sub, part, err);
    const bool ratio = r->kind == TG_ROPE_YARN || r->kind == TG_ROPE_LONG;
    if (ratio || r->kind == TG_ROPE_LLAMA3) {
        const char *key = "original_max_position_embeddings";
        const tg_config_json *from = json_object_get(top->root, key) ? top : sub;
        st = tg_config_json_int(from, key, NULL, 1, 1 << 24, a->max_positions,
                                &r->original_positions, err);
    }
    const json_t *factor = json_object_get(sub->root, "factor");
    if (st == TG_OK &&
        (r->kind == TG_ROPE_LONG ? !factor || json_is_null(factor) : ratio && json_is_null(factor)))
        r->factor = (float)((double)a->max_positions / r->original_positions);
    else if (st == TG_OK)
        st = read_number(sub, "factor", kinds[r->kind], &r->factor, err);
    if (st == TG_OK && r->kind == TG_ROPE_DYNAMIC) st = read_dynamic(a, sub, err);
    if (st == TG_OK && r->kind == TG_ROPE_LLAMA3) st = read_llama3(r, sub, err);
    if (st == TG_OK && r->kind == TG_ROPE_YARN) st = read_yarn(r, sub, err);
    if (st == TG_OK && r->kind == TG_ROPE_LONG) st = read_longrope(r, sub, err);
    return st;
}

/* NULL: out of memory. */
static json_t *stretches(const tg_rope *r, const float *of) {
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < r->dims / 2 && list; i++)
        failed |= json_array_append_new(list, json_real((double)of[i]));
    if (!failed) return list;
    json_decref(list);
    return NULL;
}

/* Which part of a head is turned; of a proportional one a little more, because readers round down. */
static double part_of(const tg_arch *a, const tg_rope *r) {
    const bool more = r->kind == TG_ROPE_PROPORTIONAL && 2 * r->angles < a->head_dim;
    double part = (more ? 2.0 * r->angles + 1 : tg_rope_span(r)) / a->head_dim;
    if ((int)(part * a->head_dim) < tg_rope_span(r) && !more) part = nextafter(part, 1);
    return part;
}

json_t *tg_rope_scaling_object(const tg_arch *a, const tg_rope *r) {
    json_t *p = json_pack("{s:s, s:f, s:f}", "rope_type", kinds[r->kind], "rope_theta",
                          (double)r->theta, "partial_rotary_factor", part_of(a, r));
    int failed = p == NULL;
    if (p && r->kind != TG_ROPE_DEFAULT)
        failed |= json_object_set_new(p, "factor", json_real((double)r->factor));
    if (p && r->original_positions && r->kind != TG_ROPE_DYNAMIC)
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
    if (p && r->kind == TG_ROPE_LONG) {
        failed |= json_object_set_new(p, "attention_factor", json_real((double)r->attention));
        failed |= json_object_set_new(p, "short_factor", stretches(r, r->stretch));
        failed |= json_object_set_new(p, "long_factor", stretches(r, r->long_stretch));
    }
    if (!failed) return p;
    json_decref(p);
    return NULL;
}
