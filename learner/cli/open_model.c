#include "learner/cli/open_model.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/config/locate.h"

#include <inttypes.h>

tg_status tg_cli_threads(int64_t threads, tg_error *err) {
    enum { MOST = 1024 };
    if (threads >= 0 && threads <= MOST) return TG_OK;
    return tg_fail(err, TG_USAGE,
                   "--threads: expected a whole number from 0 (one per CPU) to %d, found %" PRId64,
                   MOST, threads);
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
    if (st == TG_OK && tg_tokenizer_is_there(folder))
        st = tg_tokenizer_open(&m->tokenizer, folder, err);
    if (st != TG_OK) tg_cli_model_close(m);
    tg_free(folder);
    return st;
}

int tg_cli_model_vocab(const tg_cli_model *m) {
    const tg_arch *arch = &m->model->arch;
    return arch->kind == TG_KIND_SEQ2SEQ ? tg_arch_encoder(arch).vocab_size : arch->vocab_size;
}

void tg_cli_model_check_length(tg_cli_model *m, const char *command, int64_t n) {
    const tg_arch *a = &m->model->arch;
    if (m->warned || !a->rope.dims || n <= a->max_positions) return;
    m->warned = true;
    tg_log_warn(command,
                "texts of up to %" PRId64 " tokens: the model was trained with %d positions "
                "(config.json), results beyond them may be poor",
                n, a->max_positions);
}

void tg_cli_model_close(tg_cli_model *m) {
    tg_tokenizer_destroy(&m->tokenizer);
    tg_model_destroy(&m->model);
    tg_backend_close(&m->be);
}
