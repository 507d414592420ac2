/* The steps of tg_optim on one run, whatever its length. */
#include "tests/support/optim_eval.h"

#include "common/base/check.h"
#include "learner/optim/kinds.h"

#include <math.h>

static double number(const json_t *o, const char *key, double fallback) {
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

static void get(const json_t *list, float *out, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (float)json_number_value(json_array_get(list, i));
}

static json_t *put(const float *x, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_real((double)x[i]));
    return list;
}

static void *zeros(tg_backend *be, size_t bytes, tg_error *err) {
    size_t floats = bytes / sizeof(float) + 1;
    float *p = tg_backend_alloc(be, floats * sizeof *p, err);
    if (p) be->ops->fill(be, p, 0.0f, floats);
    return p;
}

static tg_optim_opts options(const json_t *in) {
    const json_t *betas = json_object_get(in, "betas");
    return (tg_optim_opts){
        .kind = json_string_value(json_object_get(in, "kind")),
        .beta1 = json_number_value(json_array_get(betas, 0)),
        .beta2 = json_number_value(json_array_get(betas, 1)),
        .eps = number(in, "eps", 1e-8),
        .weight_decay = number(in, "weight_decay", 0),
        .alpha = number(in, "alpha", 0.99),
        .momentum = number(in, "momentum", 0),
        .dampening = number(in, "dampening", 0),
        .centered = json_is_true(json_object_get(in, "centered")),
        .nesterov = json_is_true(json_object_get(in, "nesterov")),
    };
}

static tg_status make_state(tg_optim_run *r, const tg_optim_kind *kind, const tg_optim_opts *o,
                            tg_backend *be, tg_error *err) {
    for (int k = 0; k < kind->n_moments(o); k++) {
        if (!kind->eight_bits) {
            r->state[k] = zeros(be, r->n * sizeof(float), err);
            if (!r->state[k]) return TG_NOMEM;
            continue;
        }
        r->state8[k] =
            (tg_quant8_state){zeros(be, r->n, err), zeros(be, 4 * tg_quant8_blocks(r->n), err)};
        if (!r->state8[k].code || !r->state8[k].largest) return TG_NOMEM;
    }
    return TG_OK;
}

/* Backends under test keep their memory where we can read it. */
static json_t *state_json(const tg_optim_run *r, int moments) {
    json_t *all = json_array();
    for (int k = 0; k < moments; k++) {
        const tg_quant8_state *s = &r->state8[k];
        json_t *list = s->code ? json_array() : put(r->state[k], r->n);
        for (size_t i = 0; s->code && i < r->n; i++) {
            float x =
                k ? tg_quant8_decode_unsigned(s->code[i]) : tg_quant8_decode_signed(s->code[i]);
            json_array_append_new(list, json_real((double)(x * s->largest[i / TG_QUANT8_BLOCK])));
        }
        json_array_append_new(all, list);
    }
    return all;
}

static tg_status run(const json_t *in, json_t *out, const tg_optim_kind *kind, tg_backend *be,
                     tg_error *err) {
    tg_optim_opts o = options(in);
    const json_t *param = json_object_get(in, "param"), *grads = json_object_get(in, "grads"), *g;
    tg_optim_run r = {.n = json_array_size(param), .weight_decay = o.weight_decay};
    r.param = zeros(be, r.n * sizeof(float), err);
    r.grad = zeros(be, r.n * sizeof(float), err);
    if (!r.param || !r.grad) return TG_NOMEM;
    tg_status st = make_state(&r, kind, &o, be, err);
    if (st != TG_OK) return st;
    get(param, r.param, r.n);
    double most = number(in, "max_grad_norm", 0);
    size_t k;
    json_array_foreach(grads, k, g) {
        get(g, r.grad, r.n);
        double norm = sqrt(be->ops->sumsq(be, r.grad, r.n));
        double scale = most > 0 ? TG_MIN(most / (norm + 1e-6), 1.0) : 1.0;
        kind->step(be, &o, &r, number(in, "lr", 1e-3), (float)scale, (int64_t)k + 1);
    }
    json_object_set_new(out, "param", put(r.param, r.n));
    json_object_set_new(out, "state", state_json(&r, kind->n_moments(&o)));
    return TG_OK;
}

tg_status tg_optim_eval(const json_t *in, json_t *out, tg_error *err) {
    const char *name = json_string_value(json_object_get(in, "backend"));
    const tg_optim_kind *kind = tg_optim_kind_find(json_string_value(json_object_get(in, "kind")));
    if (!kind) return tg_fail(err, TG_DATA, "kind: no such optimizer");
    tg_backend *be;
    tg_status st = tg_backend_open(&be, name ? name : "ref", 0, err);
    if (st != TG_OK) return st;
    st = run(in, out, kind, be, err);
    tg_backend_close(&be);
    return st;
}
