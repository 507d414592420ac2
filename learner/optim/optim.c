/* State and runs of the trained tensors.
 *
 * Invariant: a moment in f32 has the layout of the gradients; neighbouring tensors of equal decay are stepped as one run, gaps
 * included (gaps are zero everywhere and stay so). Tensors of 8-bit optimizers have places of their own, because a block of codes
 * never spans two tensors. Used from the thread of the backend. */
#include "learner/optim/optim.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/optim/kinds.h"

#include <math.h>
#include <string.h>

/* Where a tensor's state lies in each moment's block, in bytes. */
typedef struct place {
    size_t state, largest;
    bool trained, eight; /* eight: codes at `state`, largest magnitudes at `largest` */
} place;

typedef struct slot {
    tg_model *model; /* borrowed */
    unsigned char *moment[TG_OPTIM_MOMENTS];
    place *places; /* (params.n) */
    tg_optim_run *runs;
    size_t n_runs;
} slot;

struct tg_optim {
    tg_optim_opts opts;
    const tg_optim_kind *kind;
    int n_moments;
    slot *slots;
    int n_slots;
    int64_t steps;
};

static bool decays(tg_decay_rule rule, const tg_param *p) {
    if (strstr(p->name, "bias")) return false;
    return rule == TG_DECAY_TRAINER ? p->ndim > 1 : !strstr(p->name, "LayerNorm.weight");
}

/* Places of all tensors (or NULL); returns the bytes of one moment. */
static size_t place_states(const tg_optim_kind *kind, const tg_params *params, place *places) {
    enum { ALIGN = 64 };
    size_t used = 0;
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        place at = {.trained = p->grad_offset != TG_PARAM_FROZEN};
        if (at.trained && !kind->eight_bits) {
            at.state = p->grad_offset * sizeof(float);
        } else if (at.trained) {
            at.eight = p->count >= TG_OPTIM_8BIT_MIN;
            at.state = used;
            used += p->count * (at.eight ? 1 : sizeof(float));
            at.largest = used = (used + ALIGN - 1) / ALIGN * ALIGN;
            if (at.eight) used += tg_quant8_blocks(p->count) * sizeof(float);
            used = (used + ALIGN - 1) / ALIGN * ALIGN;
        }
        if (places) places[i] = at;
    }
    return kind->eight_bits ? used : params->grad_total * sizeof(float);
}

size_t tg_optim_bytes(const tg_optim_opts *opts, const tg_params *params) {
    const tg_optim_kind *kind = tg_optim_kind_find(opts->kind);
    if (!kind) return 0;
    return (size_t)kind->n_moments(opts) * tg_stock_bytes(place_states(kind, params, NULL));
}

/* ---- opening ---- */

static tg_optim_run run_of(const tg_optim *o, const slot *s, size_t i) {
    const tg_param *p = &s->model->params.list[i];
    const place *at = &s->places[i];
    tg_optim_run r = {.param = s->model->data + p->offset,
                      .grad = s->model->grad + p->grad_offset,
                      .n = p->count,
                      .weight_decay = decays(o->opts.decay, p) ? o->opts.weight_decay : 0};
    for (int k = 0; k < o->n_moments; k++) {
        unsigned char *state = s->moment[k] + at->state;
        if (at->eight)
            r.state8[k] = (tg_quant8_state){state, (float *)(void *)(s->moment[k] + at->largest)};
        else
            r.state[k] = (float *)(void *)state;
    }
    return r;
}

/* Whether b goes on where a ends, but for a gap, in everything they have. */
static bool continues(const tg_optim *o, const tg_optim_run *a, const tg_optim_run *b) {
    if (o->kind->eight_bits || a->weight_decay != b->weight_decay) return false;
    return b->param - a->param == b->grad - a->grad;
}

static tg_status find_runs(const tg_optim *o, slot *s, tg_error *err) {
    const tg_params *p = &s->model->params;
    s->runs = tg_alloc_array(p->n, sizeof *s->runs);
    if (!s->runs) return tg_fail_nomem(err, p->n * sizeof *s->runs);
    for (size_t i = 0; i < p->n; i++) {
        if (!s->places[i].trained) continue;
        tg_optim_run r = run_of(o, s, i), *last = s->n_runs ? &s->runs[s->n_runs - 1] : NULL;
        if (last && continues(o, last, &r))
            last->n = (size_t)(r.param - last->param) + r.n;
        else
            s->runs[s->n_runs++] = r;
    }
    return TG_OK;
}

static tg_status open_slot(const tg_optim *o, slot *s, tg_model *m, tg_error *err) {
    if (!m->grad) return tg_fail(err, TG_BUG, "the optimizer was given a model without gradients");
    s->model = m;
    s->places = tg_alloc_array(m->params.n, sizeof *s->places);
    if (!s->places) return tg_fail_nomem(err, m->params.n * sizeof *s->places);
    size_t bytes = place_states(o->kind, &m->params, s->places);
    for (int k = 0; k < o->n_moments; k++) {
        void *block = s->moment[k] = tg_backend_alloc(m->be, bytes, err);
        if (!block) return err ? err->status : TG_NOMEM;
        m->be->ops->fill(m->be, block, 0.0F, bytes / sizeof(float));
    }
    return find_runs(o, s, err);
}

tg_status tg_optim_create(tg_optim **out, tg_model *const *models, int n_models,
                          const tg_optim_opts *opts, tg_error *err) {
    *out = NULL;
    const tg_optim_kind *kind = tg_optim_kind_find(opts->kind);
    if (!kind)
        return tg_fail(err, TG_UNSUPPORTED,
                       "optimizer \"%s\" is not built into this version (there are: adamw, "
                       "adamw_8bit, adam, rmsprop, sgd)",
                       opts->kind ? opts->kind : "");
    tg_optim *o = tg_alloc(sizeof *o);
    if (!o) return tg_fail_nomem(err, sizeof *o);
    o->opts = *opts;
    o->opts.kind = kind->name; /* the caller's text may be short-lived */
    o->kind = kind;
    o->n_moments = kind->n_moments(opts);
    TG_ASSERT(o->n_moments <= TG_OPTIM_MOMENTS);
    o->slots = tg_alloc_array((size_t)n_models, sizeof(slot));
    tg_status st = o->slots ? TG_OK : tg_fail_nomem(err, (size_t)n_models * sizeof(slot));
    for (int i = 0; st == TG_OK && i < n_models; i++) {
        o->n_slots++;
        st = open_slot(o, &o->slots[i], models[i], err);
    }
    if (st != TG_OK) tg_optim_destroy(&o);
    *out = o;
    return st;
}

void tg_optim_destroy(tg_optim **optim) {
    tg_optim *o = *optim;
    if (!o) return;
    for (int i = 0; o->slots && i < o->n_slots; i++) {
        slot *s = &o->slots[i];
        for (int k = 0; k < o->n_moments; k++)
            if (s->moment[k]) tg_backend_free(s->model->be, s->moment[k]);
        tg_free(s->places);
        tg_free(s->runs);
    }
    tg_free(o->slots);
    tg_free(o);
    *optim = NULL;
}

/* ---- use ---- */

double tg_optim_grad_norm(tg_optim *o) {
    double sum = 0;
    for (int i = 0; i < o->n_slots; i++) {
        tg_model *m = o->slots[i].model;
        sum += m->be->ops->sumsq(m->be, m->grad, m->params.grad_total);
    }
    return sqrt(sum);
}

void tg_optim_step(tg_optim *o, double lr, float grad_scale) {
    o->steps++;
    for (int i = 0; i < o->n_slots; i++) {
        const slot *s = &o->slots[i];
        for (size_t k = 0; k < s->n_runs; k++)
            o->kind->step(s->model->be, &o->opts, &s->runs[k], lr, grad_scale, o->steps);
        tg_model_changed(s->model);
    }
}

void tg_optim_clear(tg_optim *o) {
    for (int i = 0; i < o->n_slots; i++) {
        tg_model *m = o->slots[i].model;
        if (!m->grad_rests) m->be->ops->fill(m->be, m->grad, 0.0F, m->params.grad_total);
    }
}

void tg_optim_rest(tg_optim *o) {
    for (int i = 0; i < o->n_slots; i++) tg_model_rest_grad(o->slots[i].model);
}

int tg_optim_n_moments(const tg_optim *o) {
    return o->n_moments;
}

int tg_optim_parts(const tg_optim *o, int model, int k, size_t tensor, tg_optim_part out[2]) {
    TG_ASSERT(model >= 0 && model < o->n_slots && k >= 0 && k < o->n_moments);
    const slot *s = &o->slots[model];
    TG_ASSERT(tensor < s->model->params.n);
    const place *at = &s->places[tensor];
    size_t count = s->model->params.list[tensor].count;
    if (!at->trained) return 0;
    out[0] = (tg_optim_part){s->moment[k] + at->state, count, at->eight};
    if (!at->eight) return 1;
    out[1] = (tg_optim_part){s->moment[k] + at->largest, tg_quant8_blocks(count), false};
    return 2;
}

int64_t tg_optim_steps(const tg_optim *o) {
    return o->steps;
}

void tg_optim_set_steps(tg_optim *o, int64_t steps) {
    o->steps = steps;
}
