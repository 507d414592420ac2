/* Settings of encoders: layers, labels. */
#include "common/nn/family/encoders.h"

#include <stdio.h>
#include <string.h>

/* One label of which one is right: every score would be 1. transformers opens no such folder. */
static tg_status check_problem(const tg_arch *a, const tg_config_json *c, tg_error *err) {
    const char *kind = json_string_value(json_object_get(c->root, "problem_type"));
    if (a->n_labels > 1 || !kind || strcmp(kind, "single_label_classification") != 0) return TG_OK;
    return tg_fail(err, TG_DATA,
                   "%s: problem_type: %s of 1 label: expected \"regression\", or more labels",
                   c->path, kind);
}

/* The number of labels: num_labels, else of id2label, else 2, as transformers has it. */
tg_status tg_labels_read(tg_arch *a, const tg_config_json *c, tg_error *err) {
    json_t *names = json_object_get(c->root, "id2label");
    if (names && !json_is_object(names) && !json_is_null(names))
        return tg_fail(err, TG_DATA, "%s: id2label: expected an object", c->path);
    const size_t named = json_object_size(names);
    tg_status st = tg_config_json_int(c, "num_labels", NULL, 1, 1 << 16, named ? (int64_t)named : 2,
                                      &a->n_labels, err);
    return st == TG_OK ? check_problem(a, c, err) : st;
}

static tg_status read_head(tg_arch *a, const tg_config_json *c, const char *classes,
                           tg_error *err) {
    const char *name =
        json_string_value(json_array_get(json_object_get(c->root, "architectures"), 0));
    char wanted[80];
    snprintf(wanted, sizeof wanted, "%sForSequenceClassification", classes);
    a->labels = name && !strcmp(name, wanted);
    if (a->labels) {
        a->pooler = true;
        return tg_labels_read(a, c, err);
    }
    if (a->pool_act != TG_ACT_TANH) return TG_OK;
    const json_t *said = json_object_get(c->root, "add_pooling_layer");
    snprintf(wanted, sizeof wanted, "%sModel", classes);
    /* of pre-training, masked words …; and the bare model, made without one, was saved without a word of it */
    a->pooler_by_file = !said || json_is_null(said) || !name || strcmp(name, wanted) != 0;
    if (a->pooler_by_file) return TG_OK;
    return tg_config_json_bool(c, "add_pooling_layer", true, &a->pooler, err);
}

/* Older files may ask for distances in the scores. */
static tg_status check_positions(const tg_config_json *c, tg_error *err) {
    const char *kind;
    tg_status st = tg_config_json_str(c, "position_embedding_type", "absolute", &kind, err);
    if (st == TG_OK && strcmp(kind, "absolute") != 0)
        st = tg_fail(err, TG_UNSUPPORTED,
                     "%s: position_embedding_type: \"%.40s\" is not built into this version (there "
                     "is: absolute)",
                     c->path, kind);
    return st;
}

tg_status tg_encoder_read(const tg_key *keys, tg_arch *a, const tg_config_json *c,
                          const char *classes, tg_error *err) {
    a->kind = TG_KIND_ENCODER;
    a->out_in = a->norm_after = a->embed_norm = a->pad_fixed = true;
    a->qkv_bias = a->attn_out_bias = a->mlp_bias = true;
    a->norm_eps = 1e-12f;
    tg_status st = tg_keys_read(keys, a, c, err);
    if (st == TG_OK) st = check_positions(c, err);
    if (st == TG_OK) st = read_head(a, c, classes, err);
    a->types = a->n_types > 0;
    return st == TG_OK ? tg_decoder_sizes(a, c, 4, err) : st;
}

static bool write_labels(const tg_arch *a, json_t *o) {
    json_t *names = json_object(), *ids = json_object();
    int failed = !names || !ids;
    for (int i = 0; i < a->n_labels && !failed; i++) {
        char id[16], name[32];
        snprintf(id, sizeof id, "%d", i);
        snprintf(name, sizeof name, "LABEL_%d", i);
        failed |= json_object_set_new(names, id, json_string(name));
        failed |= json_object_set_new(ids, name, json_integer(i));
    }
    failed |= json_object_set_new(o, "id2label", names);
    return !(failed | json_object_set_new(o, "label2id", ids));
}

bool tg_encoder_write(const tg_key *keys, const tg_arch *a, json_t *o, const char *classes) {
    char name[80];
    snprintf(name, sizeof name, "%s%s", classes, a->labels ? "ForSequenceClassification" : "Model");
    if (a->labels && !json_object_size(json_object_get(o, "id2label")) && !write_labels(a, o))
        return false;
    if (!a->labels && !a->pooler && a->pool_act == TG_ACT_TANH &&
        json_object_set_new(o, "add_pooling_layer", json_false()))
        return false;
    return tg_keys_write(keys, a, o, name);
}
