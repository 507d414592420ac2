/* Saving a model that is on a device as a Hugging Face folder. */
#include "common/base/check.h"
#include "common/nn/model.h"
#include "common/nn/model_files.h"

struct saving {
    const tg_model *m;
    tg_save_opts opts;
};

static tg_status from_device(void *arg, size_t index, size_t begin, size_t count, tg_dtype as,
                             void *out, tg_error *err) {
    (void)err;
    const tg_model *m = arg;
    const float *at = m->data + m->params.list[index].offset + begin;
    if (as == TG_F32) {
        tg_backend_download(m->be, out, at, count * sizeof(float));
        return TG_OK;
    }
    float piece[4096];
    for (size_t i = 0; i < count; i += TG_COUNT_OF(piece)) {
        size_t n = TG_MIN(count - i, TG_COUNT_OF(piece));
        tg_backend_download(m->be, piece, at + i, n * sizeof(float));
        tg_f32_to_half(as, piece, n, (uint16_t *)out + i);
    }
    return TG_OK;
}

static tg_status save_files(void *arg, const char *folder, tg_error *err) {
    const struct saving *s = arg;
    const tg_model *m = s->m;
    tg_status st = tg_model_write_config(folder, &m->arch, m->config_text, s->opts.dtype, err);
    if (st == TG_OK)
        st = tg_model_write_generation(folder, &m->arch, m->generation_text, m->config_text, err);
    if (st == TG_OK)
        st = tg_model_write_weights(folder, &m->params, s->opts, from_device, (void *)(uintptr_t)m,
                                    err);
    return st;
}

tg_status tg_model_save_as(const tg_model *m, const char *folder, tg_save_opts opts,
                           tg_error *err) {
    TG_ASSERT(!m->resting && !m->half); /* its numbers are not there */
    TG_ASSERT(opts.dtype == TG_F32 || opts.dtype == TG_F16 || opts.dtype == TG_BF16);
    struct saving s = {m, opts};
    return tg_model_write_folder(folder, save_files, &s, err);
}

tg_status tg_model_save(const tg_model *m, const char *folder, tg_error *err) {
    return tg_model_save_as(m, folder, (tg_save_opts){TG_F32, 0}, err);
}
