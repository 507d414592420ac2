/* Reading an architecture from a folder, and refusing numbers that do not make a model. */
#include "common/nn/arch.h"

#include "common/base/check.h"
#include "common/base/str.h"
#include "common/nn/family/encoders.h"
#include "common/nn/weights.h"

#include <stdio.h>
#include <string.h>

/* A causal model whose config.json says that it judges texts. */
static tg_status read_causal_labels(tg_arch *arch, const tg_config_json *c, tg_error *err) {
    const char *name =
        json_string_value(json_array_get(json_object_get(c->root, "architectures"), 0));
    if (arch->kind != TG_KIND_CAUSAL || !name || !tg_str_ends(name, "ForSequenceClassification"))
        return TG_OK;
    arch->labels = true;
    arch->tied_head = false;
    return tg_labels_read(arch, c, err);
}

/* Some of the first Llama folders say -1 for none. Beyond the table torch makes no model of it. */
static void read_pad_from_end(tg_arch *arch, const tg_config_json *c) {
    const json_t *pad = json_object_get(c->root, "pad_token_id");
    const json_int_t id = json_integer_value(pad);
    if (id < 0 && id >= -arch->vocab_size) arch->pad_from_end = (int)-id;
}

tg_status tg_arch_load(tg_arch *arch, const char *folder, tg_error *err) {
    *arch = (tg_arch){0};
    tg_config_json config;
    tg_status st = tg_config_json_open(&config, folder, "config.json", err);
    if (st != TG_OK) return st;
    const char *type = NULL;
    st = tg_config_json_str(&config, "model_type", NULL, &type, err);
    const tg_family *family = type ? tg_family_find(type) : NULL;
    tg_error why = {0};
    if (st == TG_OK && !type) {
        st = tg_fail(err, TG_DATA, "%s: model_type: missing (for example \"gpt2\")", config.path);
    } else if (st == TG_OK && !family) {
        st = tg_family_unknown(type, &why);
        tg_fail(err, st, "%s: %s", config.path, why.msg);
    }
    if (st == TG_OK && family) {
        snprintf(arch->family, sizeof arch->family, "%s", family->name);
        st = family->read(arch, &config, err);
        read_pad_from_end(arch, &config);
        if (st == TG_OK) st = read_causal_labels(arch, &config, err);
        if (st == TG_OK && (st = tg_arch_check(arch, err)) != TG_OK)
            tg_error_prefix(err, "%s: ", config.path);
    }
    if (st == TG_OK && family && family->head_by_file)
        st = tg_weights_tied(folder, family, &arch->tied_head, err);
    if (st == TG_OK && family && arch->pooler_by_file)
        st = tg_weights_pooler(folder, family, &arch->pooler, err);
    arch->pooler_by_file = false; /* settled */
    tg_config_json_close(&config);
    return st;
}

tg_arch tg_arch_encoder(const tg_arch *arch) {
    tg_arch e = *arch;
    e.kind = TG_KIND_ENCODER;
    e.n_layers = arch->enc_layers;
    e.n_heads = e.n_kv_heads = arch->enc_heads;
    e.head_dim = arch->enc_head_dim;
    e.mlp_width = arch->enc_mlp_width;
    e.value_head = e.norm_first = false;
    if (arch->split_embed) e.vocab_size = arch->src_vocab;
    return e;
}

/* One stack's numbers; what: "" or "the encoder's ". */
static tg_status check_stack(const tg_arch *a, const char *what, tg_error *err) {
    const struct {
        const char *name;
        int value, max;
    } sizes[] = {
        {"n_layers", a->n_layers, TG_MAX_LAYERS},
        {"n_heads", a->n_heads, 1024},
        {"n_kv_heads", a->n_kv_heads, 1024},
        {"head_dim", a->head_dim, 1 << 16},
        {"width", a->width, 1 << 16},
        {"mlp_width", a->mlp_width, 1 << 18},
        {"vocab_size", a->vocab_size, 1 << 24},
        {"max_positions", a->max_positions, 1 << 24},
    };
    for (size_t i = 0; i < TG_COUNT_OF(sizes); i++)
        if (sizes[i].value < 1 || sizes[i].value > sizes[i].max)
            return tg_fail(err, TG_DATA, "model: %s%s: expected 1 to %d, found %d", what,
                           sizes[i].name, sizes[i].max, sizes[i].value);
    if (a->n_heads % a->n_kv_heads)
        return tg_fail(err, TG_DATA, "model: %sn_heads %d is not a multiple of n_kv_heads %d", what,
                       a->n_heads, a->n_kv_heads);
    if ((int64_t)a->n_heads * a->head_dim > 1 << 16)
        return tg_fail(err, TG_DATA, "model: %sn_heads %d times head_dim %d is too large", what,
                       a->n_heads, a->head_dim);
    if (a->head_dim > 512)
        return tg_fail(err, TG_UNSUPPORTED, "model: %shead_dim %d is above 512", what, a->head_dim);
    return TG_OK;
}

/* Embeddings, labels, shared layers. */
static tg_status check_ends(const tg_arch *a, tg_error *err) {
    const struct {
        const char *name;
        bool is_there;
        int value, max;
    } sizes[] = {
        {"embed_width", a->narrow_embed, a->embed_width, 1 << 16},
        {"n_types", a->types, a->n_types, 1 << 16},
        {"n_labels", a->labels, a->n_labels, 1 << 16},
        {"n_groups", a->n_groups != 0, a->n_groups, a->n_layers},
        {"inner_group", a->inner_group != 0, a->inner_group, TG_MAX(a->n_groups, 1)},
    };
    for (size_t i = 0; i < TG_COUNT_OF(sizes); i++)
        if (sizes[i].is_there && (sizes[i].value < 1 || sizes[i].value > sizes[i].max))
            return tg_fail(err, TG_DATA, "model: %s: expected 1 to %d, found %d", sizes[i].name,
                           sizes[i].max, sizes[i].value);
    return TG_OK;
}

tg_status tg_arch_check(const tg_arch *a, tg_error *err) {
    if (!memchr(a->family, '\0', sizeof a->family) || !tg_family_find(a->family))
        return tg_family_unknown(a->family, err);
    tg_status st = check_stack(a, "", err);
    if (st == TG_OK && a->kind == TG_KIND_SEQ2SEQ) {
        const tg_arch encoder = tg_arch_encoder(a);
        st = check_stack(&encoder, "the encoder's ", err);
    }
    if (st != TG_OK) return st;
    const int turned[] = {a->rope.dims, a->local_rope.dims};
    for (int i = 0; i < 2; i++)
        if (turned[i] < 0 || turned[i] > a->head_dim || turned[i] % 2)
            return tg_fail(err, TG_DATA, "model: %d rotary dimensions in heads of %d", turned[i],
                           a->head_dim);
    if (a->qkv_by_head && a->n_kv_heads != a->n_heads)
        return tg_fail(err, TG_DATA,
                       "model: qkv by head needs as many key heads (%d) as heads (%d)",
                       a->n_kv_heads, a->n_heads);
    if (a->rel_buckets < 0 || a->rel_buckets > 4096 || (a->rel_buckets && a->rel_buckets < 4) ||
        (a->rel_buckets && a->rel_distance <= a->rel_buckets / 2))
        return tg_fail(err, TG_DATA,
                       "model: %d buckets of distances up to %d: expected 4 to 4096 buckets and a "
                       "distance above half of them",
                       a->rel_buckets, a->rel_distance);
    if (2 * ((int64_t)a->rel_distance + 1) * TG_MAX(a->n_heads, a->enc_heads) > 4 << 20)
        return tg_fail(err, TG_UNSUPPORTED,
                       "model: relative distances up to %d of %d heads are too many",
                       a->rel_distance, a->n_heads);
    st = check_ends(a, err);
    if (st != TG_OK) return st;
    if (!(a->norm_eps >= 0 && a->norm_eps <= 1))
        return tg_fail(err, TG_DATA, "model: norm_eps: expected 0 to 1, found %g",
                       (double)a->norm_eps);
    return TG_OK;
}
