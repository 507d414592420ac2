/* Single tensors of a model, by name. */
#include "common/nn/model.h"

static tg_status find(const tg_model *m, const char *name, size_t count, const tg_param **out,
                      tg_error *err) {
    const tg_param *p = *out = tg_params_find(&m->params, name);
    if (!p) return tg_fail(err, TG_DATA, "model: no tensor \"%.200s\"", name);
    if (p->count != count)
        return tg_fail(err, TG_DATA, "model: tensor \"%s\" has %zu elements, not %zu", name,
                       p->count, count);
    return TG_OK;
}

tg_status tg_model_get(const tg_model *m, const char *name, float *out, size_t count,
                       tg_error *err) {
    const tg_param *p;
    tg_status st = find(m, name, count, &p, err);
    if (st == TG_OK) tg_backend_download(m->be, out, m->data + p->offset, count * sizeof(float));
    return st;
}

tg_status tg_model_get_grad(const tg_model *m, const char *name, float *out, size_t count,
                            tg_error *err) {
    const tg_param *p;
    tg_status st = find(m, name, count, &p, err);
    if (st == TG_OK && (!m->grad || p->grad_offset == TG_PARAM_FROZEN))
        st = tg_fail(err, TG_DATA, "model: \"%s\" is not trainable, so it has no gradient", name);
    if (st == TG_OK)
        tg_backend_download(m->be, out, m->grad + p->grad_offset, count * sizeof(float));
    return st;
}

tg_status tg_model_set(tg_model *m, const char *name, const float *values, size_t count,
                       tg_error *err) {
    const tg_param *p;
    tg_status st = find(m, name, count, &p, err);
    if (st == TG_OK) tg_backend_upload(m->be, m->data + p->offset, values, count * sizeof(float));
    if (st == TG_OK) tg_model_changed(m);
    return st;
}
