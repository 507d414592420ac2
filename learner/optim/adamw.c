/* AdamW (Loshchilov and Hutter 2019) over the parameter blocks of the trained models.
 *
 * Invariant: m and v have the layout of the parameters; neighbouring tensors of equal decay are
 * stepped as one run, gaps included (gaps are zero everywhere and stay so). Used from the thread of
 * the backend. */
#include "learner/optim/optim.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>
#include <string.h>

typedef struct run { /* floats first .. first + n - 1 of a block, all with or all without decay */
    size_t first, n;
    bool decay;
} run;

typedef struct slot {
    tg_model *model; /* borrowed */
    float *moment[2];
    run *runs;
    size_t n_runs;
} slot;

struct tg_optim {
    tg_optim_opts opts;
    slot *slots;
    int n_slots;
    int64_t steps;
};

static bool decays(const char *name) {
    return strstr(name, "bias") == NULL;
}

static tg_status find_runs(slot *s, tg_error *err) {
    const tg_params *p = &s->model->params;
    s->runs = tg_alloc_array(p->n, sizeof(run));
    if (!s->runs) return tg_fail_nomem(err, p->n * sizeof(run));
    for (size_t i = 0; i < p->n; i++) {
        bool decay = decays(p->list[i].name);
        size_t end = i + 1 < p->n ? p->list[i + 1].offset : p->total;
        if (s->n_runs && s->runs[s->n_runs - 1].decay == decay)
            s->runs[s->n_runs - 1].n = end - s->runs[s->n_runs - 1].first;
        else
            s->runs[s->n_runs++] = (run){p->list[i].offset, end - p->list[i].offset, decay};
    }
    return TG_OK;
}

static tg_status open_slot(slot *s, tg_model *m, tg_error *err) {
    if (!m->grad) return tg_fail(err, TG_BUG, "the optimizer was given a model without gradients");
    s->model = m;
    for (int k = 0; k < 2; k++) {
        s->moment[k] = tg_backend_alloc(m->be, m->params.total * sizeof(float), err);
        if (!s->moment[k]) return err ? err->status : TG_NOMEM;
        m->be->ops->fill(m->be, s->moment[k], 0.0F, m->params.total);
    }
    return find_runs(s, err);
}

tg_status tg_optim_create(tg_optim **out, tg_model *const *models, int n_models,
                          const tg_optim_opts *opts, tg_error *err) {
    *out = NULL;
    if (strcmp(opts->kind, "adamw") != 0)
        return tg_fail(err, TG_UNSUPPORTED,
                       "optimizer \"%s\" is not built into this version: use adamw", opts->kind);
    tg_optim *o = tg_alloc(sizeof *o);
    if (!o) return tg_fail_nomem(err, sizeof *o);
    o->opts = *opts;
    o->opts.kind = "adamw"; /* the caller's text may be short-lived */
    o->slots = tg_alloc_array((size_t)n_models, sizeof(slot));
    tg_status st = o->slots ? TG_OK : tg_fail_nomem(err, (size_t)n_models * sizeof(slot));
    for (int i = 0; st == TG_OK && i < n_models; i++) {
        o->n_slots++;
        st = open_slot(&o->slots[i], models[i], err);
    }
    if (st != TG_OK) tg_optim_destroy(&o);
    *out = o;
    return st;
}

void tg_optim_destroy(tg_optim **o) {
    if (!*o) return;
    for (int i = 0; i < (*o)->n_slots; i++) {
        slot *s = &(*o)->slots[i];
        for (int k = 0; k < 2; k++) /* NOLINTNEXTLINE: n_slots is 0 where slots is NULL */
            if (s->moment[k]) tg_backend_free(s->model->be, s->moment[k]);
        tg_free(s->runs);
    }
    tg_free((*o)->slots);
    tg_free(*o);
    *o = NULL;
}

double tg_optim_grad_norm(tg_optim *o) {
    double sum = 0;
    for (int i = 0; i < o->n_slots; i++) {
        tg_model *m = o->slots[i].model;
        sum += m->be->ops->sumsq(m->be, m->grad, m->params.total);
    }
    return sqrt(sum);
}

void tg_optim_step(tg_optim *o, double lr, float grad_scale) {
    o->steps++;
    for (int i = 0; i < o->n_slots; i++) {
        slot *s = &o->slots[i];
        tg_model *m = s->model;
        for (size_t k = 0; k < s->n_runs; k++) {
            const run *r = &s->runs[k];
            tg_adamw_step step = {.lr = lr,
                                  .beta1 = o->opts.beta1,
                                  .beta2 = o->opts.beta2,
                                  .eps = o->opts.eps,
                                  .weight_decay = r->decay ? o->opts.weight_decay : 0,
                                  .t = o->steps,
                                  .grad_scale = grad_scale};
            m->be->ops->adamw(m->be, m->data + r->first, m->grad + r->first,
                              s->moment[0] + r->first, s->moment[1] + r->first, r->n, &step);
        }
    }
}

void tg_optim_clear(tg_optim *o) {
    for (int i = 0; i < o->n_slots; i++) {
        tg_model *m = o->slots[i].model;
        m->be->ops->fill(m->be, m->grad, 0.0F, m->params.total);
    }
}

int tg_optim_n_moments(const tg_optim *o) {
    (void)o;
    return 2;
}

float *tg_optim_moment(tg_optim *o, int model, int k) {
    TG_ASSERT(model >= 0 && model < o->n_slots && (k == 0 || k == 1));
    return o->slots[model].moment[k];
}

int64_t tg_optim_steps(const tg_optim *o) {
    return o->steps;
}

void tg_optim_set_steps(tg_optim *o, int64_t steps) {
    o->steps = steps;
}
