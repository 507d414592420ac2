#include "learner/cli/open_model.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/config/locate.h"

static bool has_file(const char *folder, const char *name) {
    char *path = tg_path_join(folder, name);
    bool there = path && tg_path_exists(path);
    tg_free(path);
    return there;
}

static bool has_tokenizer(const char *folder) {
    static const char *const names[] = {"tokenizer.json", "vocab.json",      "encoder.json",
                                        "spiece.model",   "tokenizer.model", "vocab.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_file(folder, names[i])) return true;
    return false;
}

tg_status tg_cli_model_open(tg_cli_model *m, const char *name, const char *backend, int threads,
                            tg_error *err) {
    *m = (tg_cli_model){0};
    char *folder = NULL;
    tg_status st = tg_model_locate(name, &folder, err);
    if (st == TG_OK) st = tg_backend_open(&m->be, backend, threads, err);
    if (st == TG_OK) st = tg_model_open(&m->model, m->be, folder, 0, 0, err);
    if (st == TG_OK && m->model->arch.kind == TG_KIND_ENCODER)
        st = tg_fail(err, TG_DATA,
                     "%s: a %s model is an encoder, which writes no text; textgen classify uses it",
                     folder, m->model->arch.family);
    if (st == TG_OK && m->model->arch.labels)
        st = tg_fail(err, TG_DATA,
                     "%s: a %s model with labels writes no text; textgen classify uses it", folder,
                     m->model->arch.family);
    if (st == TG_OK && has_tokenizer(folder)) st = tg_tokenizer_open(&m->tokenizer, folder, err);
    if (st != TG_OK) tg_cli_model_close(m);
    tg_free(folder);
    return st;
}

void tg_cli_model_close(tg_cli_model *m) {
    tg_tokenizer_destroy(&m->tokenizer);
    tg_model_destroy(&m->model);
    tg_backend_close(&m->be);
}
