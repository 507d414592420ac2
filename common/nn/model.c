/* Making, opening and copying models. A model's floats are one device block (two when trainable)
 * laid out by its table; the gaps between tensors are zero from the start, so that whole-block
 * operations (norms, optimizer) may run over them. */
#include "common/nn/model.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/nn/finite.h"
#include "common/nn/model_init.h"
#include "common/nn/weights.h"

#include <string.h>

void tg_model_destroy(tg_model **m) {
    if (!*m) return;
    tg_backend_free((*m)->be, (*m)->data);
    tg_backend_free((*m)->be, (*m)->half);
    tg_backend_free((*m)->be, (*m)->grad);
    tg_params_fini(&(*m)->params);
    tg_free((*m)->folder);
    tg_free((*m)->config_text);
    tg_free((*m)->generation_text);
    tg_free(*m);
    *m = NULL;
}

tg_status tg_model_params(tg_params *p, const tg_arch *arch, unsigned flags, tg_error *err) {
    tg_arch a = *arch;
    a.value_head = flags & TG_MODEL_VALUE_HEAD;
    tg_status st = tg_params_init(p, &a, err);
    unsigned unfrozen = flags >> TG_MODEL_UNFROZEN_SHIFT;
    if (st == TG_OK && unfrozen && arch->n_groups) {
        tg_params_fini(p);
        return tg_fail(err, TG_UNSUPPORTED,
                       "model: the layers of %s share their parameters: train all of them",
                       arch->family);
    }
    if (st == TG_OK && unfrozen)
        tg_params_freeze(p, &a, (int)TG_MIN(unfrozen - 1, (unsigned)arch->n_layers));
    return st;
}

size_t tg_model_bytes(const tg_arch *arch, unsigned flags) {
    tg_params p;
    if (tg_model_params(&p, arch, flags, NULL) != TG_OK) return 0;
    size_t floats = p.total + (flags & TG_MODEL_TRAINABLE ? p.grad_total : 0);
    tg_params_fini(&p);
    return floats * sizeof(float);
}

/* The table without the blocks. */
static tg_status make(tg_model **out, tg_backend *be, const tg_arch *arch, unsigned flags,
                      tg_error *err) {
    *out = NULL;
    tg_model *m = tg_alloc(sizeof *m);
    if (!m) return tg_fail_nomem(err, sizeof *m);
    m->be = be;
    m->flags = flags;
    m->arch = *arch;
    m->arch.value_head = flags & TG_MODEL_VALUE_HEAD;
    tg_status st = tg_model_params(&m->params, arch, flags, err);
    if (st != TG_OK) {
        tg_model_destroy(&m);
        return st;
    }
    *out = m;
    return TG_OK;
}

static void clear_gaps(tg_model *m) {
    for (size_t i = 0; i < m->params.n; i++) {
        const tg_param *p = &m->params.list[i];
        size_t end = p->offset + p->count;
        size_t next = i + 1 < m->params.n ? m->params.list[i + 1].offset : m->params.total;
        if (next > end) m->be->ops->fill(m->be, m->data + end, 0.0f, next - end);
    }
}

static tg_status make_data(tg_model *m, tg_error *err) {
    m->data = tg_backend_alloc(m->be, m->params.total * sizeof(float), err);
    if (!m->data) return TG_NOMEM;
    tg_model_changed(m);
    clear_gaps(m);
    return TG_OK;
}

static tg_status make_grad(tg_model *m, unsigned flags, tg_error *err) {
    if (!(flags & TG_MODEL_TRAINABLE)) return TG_OK;
    m->grad = tg_backend_alloc(m->be, m->params.grad_total * sizeof(float), err);
    if (!m->grad) return TG_NOMEM;
    tg_model_rest_grad(m);
    return TG_OK;
}

void tg_model_rest_grad(tg_model *m) {
    if (!m->grad_rests) tg_backend_rest(m->be, m->grad);
    m->grad_rests = true;
}

tg_status tg_model_wake_grad(tg_model *m, tg_error *err) {
    if (!m->grad_rests) return TG_OK;
    tg_status st = tg_backend_wake(m->be, m->grad, err);
    if (st != TG_OK) return st;
    m->be->ops->fill(m->be, m->grad, 0.0f, m->params.grad_total);
    m->grad_rests = false;
    return TG_OK;
}

tg_status tg_model_create(tg_model **out, tg_backend *be, const tg_arch *arch, unsigned flags,
                          uint64_t seed, tg_error *err) {
    tg_model *m;
    *out = NULL;
    tg_status st = make(&m, be, arch, flags, err);
    if (st != TG_OK) return st;
    st = make_data(m, err);
    for (size_t i = 0; i < m->params.n && st == TG_OK; i++)
        st = tg_model_init_param(m, &m->params.list[i], seed, err);
    if (st == TG_OK) st = make_grad(m, flags, err);
    if (st != TG_OK) tg_model_destroy(&m);
    *out = m;
    return st;
}

/* Text of a file of the folder, NULL when it is not there. */
static tg_status keep_text(char **out, const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_buf text = {0};
    tg_status st = tg_path_exists(path) ? tg_file_read(path, 4 << 20, &text, err) : TG_OK;
    if (st == TG_OK && text.data && !(*out = tg_buf_take(&text))) st = tg_fail_nomem(err, text.len);
    tg_buf_fini(&text);
    tg_free(path);
    return st;
}

/* From files that hold the tensors of `stored`: those of the model, or more. */
static tg_status fill_from(tg_model *m, const tg_weights *w, const tg_params *stored, uint64_t seed,
                           tg_error *err) {
    tg_status st = m->data ? TG_OK : make_data(m, err);
    for (size_t i = 0; i < m->params.n && st == TG_OK; i++) {
        const tg_param *p = &m->params.list[i];
        const tg_param *from = stored == &m->params ? p : tg_params_find(stored, p->name);
        size_t at = from ? (size_t)(from - stored->list) : 0;
        if (from && w->found[at])
            st = tg_weights_upload(w, at, p, m->be, m->data + p->offset, err);
        else
            st = tg_model_init_param(m, p, seed, err);
    }
    return st;
}

static tg_status load_weights(tg_model *m, const char *folder, unsigned flags, uint64_t seed,
                              tg_error *err) {
    tg_weights w;
    tg_status st = tg_weights_open(&w, folder, &m->arch, &m->params, err);
    if (st != TG_OK) return st;
    st = fill_from(m, &w, &m->params, seed, err);
    tg_weights_close(&w);
    if (st == TG_OK) st = make_grad(m, flags, err);
    return st;
}

/* Checksum of all parameters. */
static tg_status digest_of(const tg_model *m, uint32_t *out, tg_error *err) {
    enum { PIECE = 1 << 18 };
    float *piece = tg_alloc_array(PIECE, sizeof *piece);
    if (!piece) return tg_fail_nomem(err, PIECE * sizeof *piece);
    *out = 0;
    for (size_t at = 0; at < m->params.total; at += PIECE) {
        size_t bytes = TG_MIN(m->params.total - at, (size_t)PIECE) * sizeof *piece;
        tg_backend_download(m->be, piece, m->data + at, bytes);
        *out = tg_crc32c(*out, piece, bytes);
    }
    tg_free(piece);
    return TG_OK;
}

tg_status tg_model_rest(tg_model *m, tg_error *err) {
    TG_ASSERT(m->folder && !m->grad);
    if (m->resting) return TG_OK;
    tg_status st = m->digested ? TG_OK : digest_of(m, &m->digest, err);
    if (st != TG_OK) return st;
    m->digested = m->resting = true;
    tg_backend_rest(m->be, m->data);
    return TG_OK;
}

tg_status tg_model_wake(tg_model *m, tg_error *err) {
    if (!m->resting) return TG_OK;
    tg_status st = tg_backend_wake(m->be, m->data, err);
    if (st == TG_OK) clear_gaps(m);
    if (st == TG_OK) st = load_weights(m, m->folder, 0, 0, err);
    uint32_t digest = 0;
    if (st == TG_OK) st = digest_of(m, &digest, err);
    if (st == TG_OK && digest != m->digest)
        st = tg_fail(err, TG_DATA,
                     "%s: the weights are no longer those that the run began with: put them back, "
                     "or keep the reference in memory (alg.policy.args.reference: memory)",
                     m->folder);
    m->resting = st != TG_OK;
    return st;
}

tg_status tg_model_check(const char *folder, const tg_arch *arch, tg_error *err) {
    tg_params params;
    tg_status st = tg_params_init(&params, arch, err);
    if (st != TG_OK) return st;
    tg_weights w;
    st = tg_weights_open(&w, folder, arch, &params, err);
    if (st == TG_OK) {
        st = tg_weights_intact(&w, &params, err);
        if (st == TG_OK) st = tg_weights_finite(&w, &params, err);
        tg_weights_close(&w);
    }
    tg_params_fini(&params);
    return st;
}

tg_status tg_model_open(tg_model **out, tg_backend *be, const char *folder, unsigned flags,
                        uint64_t seed, tg_error *err) {
    *out = NULL;
    if (!tg_path_is_dir(folder))
        return tg_fail(err, TG_NOINPUT, "%s: no such model folder", folder);
    tg_arch arch;
    tg_status st = tg_arch_load(&arch, folder, err);
    if (st != TG_OK) return st;
    tg_model *m;
    st = make(&m, be, &arch, flags, err);
    if (st != TG_OK) return st;
    if (!(m->folder = tg_strdup(folder))) st = tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) st = keep_text(&m->config_text, folder, "config.json", err);
    if (st == TG_OK) st = keep_text(&m->generation_text, folder, "generation_config.json", err);
    if (st == TG_OK) st = load_weights(m, folder, flags, seed, err);
    if (st != TG_OK) tg_model_destroy(&m);
    *out = m;
    return st;
}

/* The folder's first layers. */
static tg_status load_first(tg_model *m, const tg_arch *whole, tg_error *err) {
    tg_params stored;
    tg_weights w;
    tg_status st = tg_params_init(&stored, whole, err);
    if (st != TG_OK) return st;
    st = tg_weights_open(&w, m->folder, whole, &stored, err);
    if (st == TG_OK) {
        st = fill_from(m, &w, &stored, 0, err);
        tg_weights_close(&w);
    }
    tg_params_fini(&stored);
    return st;
}

tg_status tg_model_open_first(tg_model **out, tg_backend *be, const char *folder, int n_layers,
                              tg_error *err) {
    *out = NULL;
    tg_arch whole;
    tg_status st = tg_arch_load(&whole, folder, err);
    if (st != TG_OK) return st;
    if (n_layers < 1 || n_layers > whole.n_layers)
        return tg_fail(err, TG_CONFIG, "%s: has %d layers: expected 1 to %d of them, found %d",
                       folder, whole.n_layers, whole.n_layers, n_layers);
    tg_arch arch = whole;
    arch.n_layers = n_layers;
    tg_model *m;
    st = make(&m, be, &arch, 0, err);
    if (st != TG_OK) return st;
    if (!(m->folder = tg_strdup(folder))) st = tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) st = load_first(m, &whole, err);
    if (st != TG_OK) tg_model_destroy(&m);
    *out = m;
    return st;
}

static tg_status copy_text(char **to, const char *from, tg_error *err) {
    if (!from) return TG_OK;
    *to = tg_strdup(from);
    return *to ? TG_OK : tg_fail_nomem(err, strlen(from));
}

tg_status tg_model_clone(tg_model **out, const tg_model *from, unsigned flags, uint64_t seed,
                         tg_error *err) {
    TG_ASSERT(!from->resting && !from->half); /* it would be a copy of zeros */
    tg_model *m;
    *out = NULL;
    tg_status st = make(&m, from->be, &from->arch, flags, err);
    if (st != TG_OK) return st;
    st = make_data(m, err);
    if (st == TG_OK) st = make_grad(m, flags, err);
    if (st == TG_OK) st = copy_text(&m->folder, from->folder, err);
    if (st == TG_OK) st = copy_text(&m->config_text, from->config_text, err);
    if (st == TG_OK) st = copy_text(&m->generation_text, from->generation_text, err);
    for (size_t i = 0; i < m->params.n && st == TG_OK; i++) {
        const tg_param *p = &m->params.list[i], *q = tg_params_find(&from->params, p->name);
        if (q)
            m->be->ops->copy(m->be, m->data + p->offset, from->data + q->offset, p->count);
        else
            st = tg_model_init_param(m, p, seed, err);
    }
    if (st != TG_OK) tg_model_destroy(&m);
    *out = m;
    return st;
}
