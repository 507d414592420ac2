/* Goes by way of tg_arch_load, so that config.json is read as everywhere else. */
#include "tests/support/make_model.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/model.h"
#include "common/text/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static tg_status write_text(const char *folder, const char *name, const char *text, tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_status st = tg_file_write_atomic(path, text, strlen(text), err);
    tg_free(path);
    return st;
}

static tg_status write_config(const char *folder, const char *config, int64_t vocab,
                              tg_error *err) {
    json_error_t e;
    json_t *o = json_loads(config, 0, &e);
    if (!o) return tg_fail(err, TG_DATA, "config: %s", e.text);
    if (!json_integer_value(json_object_get(o, "vocab_size")))
        json_object_set_new(o, "vocab_size", json_integer(vocab));
    char *text = json_dumps(o, JSON_INDENT(1));
    tg_status st =
        text ? write_text(folder, "config.json", text, err) : tg_fail_nomem(err, strlen(config));
    free(text);
    json_decref(o);
    return st;
}

static tg_status write_weights(const char *folder, float scale, uint64_t seed, tg_error *err) {
    tg_backend *be = NULL;
    tg_model *m = NULL;
    tg_arch arch;
    tg_status st = tg_arch_load(&arch, folder, err);
    if (st == TG_OK) st = tg_backend_open(&be, "cpu", 1, err);
    if (st == TG_OK) st = tg_model_create(&m, be, &arch, 0, seed, err);
    for (size_t i = 0; st == TG_OK && i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        if (p->ndim > 1) be->ops->scale(be, m->data + p->offset, scale, p->count);
    }
    if (st == TG_OK) st = tg_model_save(m, folder, err);
    tg_model_destroy(&m);
    tg_backend_close(&be);
    return st;
}

tg_status tg_make_model(const char *folder, const char *config, const char *tokenizer,
                        const char *tokenizer_config, float scale, uint64_t seed, tg_error *err) {
    tg_tokenizer *t = NULL;
    tg_status st = tg_tokenizer_open(&t, tokenizer, err);
    if (st == TG_OK) st = tg_dir_create(folder, err);
    if (st == TG_OK) st = write_config(folder, config, tg_tokenizer_size(t), err);
    if (st == TG_OK) st = write_weights(folder, scale, seed, err);
    if (st == TG_OK) st = tg_tokenizer_save(t, folder, err);
    if (st == TG_OK && tokenizer_config)
        st = write_text(folder, "tokenizer_config.json", tokenizer_config, err);
    tg_tokenizer_destroy(&t);
    return st;
}
