/* JSON in, the learner's own functions, JSON out. */
#include "tests/support/rl_eval.h"

#include "tests/support/optim_eval.h"

#include "common/base/arena.h"
#include "common/base/check.h"
#include "common/nn/backend.h"
#include "learner/rl/cg.h"
#include "learner/rl/gae.h"
#include "learner/rl/loss.h"

#include <math.h>
#include <string.h>

static double number(const json_t *o, const char *key, double missing) {
    const json_t *v = json_object_get(o, key);
    if (!v) return missing;
    if (json_is_boolean(v)) return json_is_true(v) ? 1 : 0;
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* A list of numbers as floats in the arena; *n is its length, or must be when positive. NULL with
 * err set. */
static float *floats(const json_t *list, const char *what, int *n, tg_arena *a, tg_error *err) {
    int size = (int)json_array_size(list);
    if (!json_is_array(list) || size < 1 || (*n > 0 && size != *n)) {
        tg_fail(err, TG_DATA, "%s: expected a list of %s numbers", what,
                *n > 0 ? "as many" : "some");
        return NULL;
    }
    float *x = tg_arena_array(a, (size_t)size, sizeof(float));
    if (!x) tg_fail_nomem(err, (size_t)size * sizeof(float));
    for (int i = 0; x && i < size; i++)
        x[i] = (float)json_number_value(json_array_get(list, (size_t)i));
    *n = size;
    return x;
}

static json_t *list_of(const float *x, int n) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real((double)x[i]));
    return list;
}

static json_t *real_or_null(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static tg_status eval_gae(const json_t *in, json_t *out, tg_arena *a, tg_error *err) {
    int n = 0;
    float *reward = floats(json_object_get(in, "reward"), "reward", &n, a, err);
    float *value = reward ? floats(json_object_get(in, "value"), "value", &n, a, err) : NULL;
    float *start = value ? floats(json_object_get(in, "start"), "start", &n, a, err) : NULL;
    float *adv = tg_arena_array(a, (size_t)n + 1, sizeof(float)),
          *ret = tg_arena_array(a, (size_t)n + 1, sizeof(float));
    unsigned char *starts = tg_arena_alloc(a, (size_t)n + 1);
    if (!start) return err->status;
    if (!adv || !ret || !starts) return tg_fail_nomem(err, (size_t)n * 9);
    for (int i = 0; i < n; i++) starts[i] = start[i] != 0;
    tg_gae(adv, ret, reward, value, starts, n, (float)number(in, "last_value", 0),
           number(in, "last_done", 0) != 0, number(in, "gamma", 0.99),
           number(in, "gae_lambda", 0.95));
    json_object_set_new(out, "advantages", list_of(adv, n));
    json_object_set_new(out, "returns", list_of(ret, n));
    return TG_OK;
}

static tg_status eval_loss(const json_t *in, tg_loss_fn *loss, json_t *out, tg_arena *a,
                           tg_error *err) {
    static const char *const keys[] = {"logp_old", "value_old", "adv",  "ret",
                                       "logp",     "entropy",   "value"};
    float *x[7], *g[3];
    int n = 0;
    for (int i = 0; i < 7; i++)
        if (!(x[i] = floats(json_object_get(in, keys[i]), keys[i], &n, a, err))) return err->status;
    for (int i = 0; i < 3; i++)
        if (!(g[i] = tg_arena_array(a, (size_t)n, sizeof(float))))
            return tg_fail_nomem(err, (size_t)n * 4);
    if (number(in, "normalize_advantage", 1) != 0) tg_normalise_advantages(x[2], x[2], n);
    tg_loss_coefs c = {.clip_range = number(in, "clip_range", 0.2),
                       .clip_range_vf = number(in, "clip_range_vf", (double)NAN),
                       .ent_coef = number(in, "ent_coef", 0),
                       .vf_coef = number(in, "vf_coef", 0.5)};
    tg_loss_terms t = {.finite = true};
    loss(&c, &(tg_loss_rows){x[0], x[1], x[2], x[3], x[4], x[5], x[6]}, n, n, &t, g[0], g[1], g[2]);
    json_object_set_new(out, "policy_loss", real_or_null(t.policy_loss));
    json_object_set_new(out, "value_loss", real_or_null(t.value_loss));
    json_object_set_new(out, "entropy_loss", real_or_null(t.entropy_loss));
    json_object_set_new(out, "loss", real_or_null(tg_loss_total(&c, &t)));
    json_object_set_new(out, "approx_kl", real_or_null(t.approx_kl));
    json_object_set_new(out, "clip_fraction", real_or_null(t.clip_fraction));
    json_object_set_new(out, "explained_variance",
                        real_or_null(tg_explained_variance(x[1], x[3], n)));
    json_object_set_new(out, "advantages_used", list_of(x[2], n));
    json_object_set_new(out, "dlogp", list_of(g[0], n));
    json_object_set_new(out, "dentropy", list_of(g[1], n));
    json_object_set_new(out, "dvalue", list_of(g[2], n));
    return TG_OK;
}

typedef struct matrix {
    const float *a; /* (n, n) */
    int n;
} matrix;

static tg_status times(void *arg, const float *v, float *out, tg_error *err) {
    (void)err;
    const matrix *m = arg;
    for (int i = 0; i < m->n; i++)
        out[i] = (float)tg_vec_dot(m->a + (size_t)i * (size_t)m->n, v, (size_t)m->n);
    return TG_OK;
}

static tg_status eval_cg(const json_t *in, json_t *out, tg_arena *a, tg_error *err) {
    int n = 0, nn = 0;
    float *b = floats(json_object_get(in, "b"), "b", &n, a, err);
    float *x = b ? floats(json_object_get(in, "x"), "x", &n, a, err) : NULL;
    float *m = x ? floats(json_object_get(in, "matrix"), "matrix", &nn, a, err) : NULL;
    float *work = m ? tg_arena_array(a, 3 * (size_t)n, sizeof *work) : NULL;
    if (!work || nn != n * n)
        return m ? tg_fail(err, TG_DATA, "matrix: expected n x n numbers") : err->status;
    matrix A = {m, n};
    tg_cg s = {.n = (size_t)n,
               .max_steps = (int)number(in, "max_steps", 10),
               .tolerance = 1e-10,
               .product = times,
               .arg = &A,
               .work = work};
    tg_status st = tg_cg_solve(&s, x, b, err);
    if (st == TG_OK) json_object_set_new(out, "x", list_of(x, n));
    return st;
}

/* The steps of tg_actor_critic_apply on one block: norm, scale, AdamW. */
static tg_status run_adamw(const json_t *in, json_t *out, tg_backend *be, tg_arena *a,
                           tg_error *err) {
    int n = 0;
    float *param = floats(json_object_get(in, "param"), "param", &n, a, err);
    if (!param) return err->status;
    size_t bytes = (size_t)n * sizeof(float), k;
    float *d[4]; /* parameters, gradient, m, v on the device */
    tg_status st = TG_OK;
    for (int i = 0; i < 4; i++) {
        d[i] = tg_backend_alloc(be, bytes, err);
        if (!d[i])
            st = err->status;
        else
            be->ops->fill(be, d[i], 0.0F, (size_t)n);
    }
    if (st == TG_OK) tg_backend_upload(be, d[0], param, bytes);
    const json_t *betas = json_object_get(in, "betas"), *grad;
    tg_adamw_step step = {.lr = number(in, "lr", 1e-3),
                          .beta1 = json_number_value(json_array_get(betas, 0)),
                          .beta2 = json_number_value(json_array_get(betas, 1)),
                          .eps = number(in, "eps", 1e-8),
                          .weight_decay = number(in, "weight_decay", 0)};
    json_t *norms = json_array();
    double max_norm = number(in, "max_grad_norm", 0);
    json_array_foreach(json_object_get(in, "grads"), k, grad) {
        float *g = st == TG_OK ? floats(grad, "grads", &n, a, err) : NULL;
        if (!g) {
            st = err->status;
            break;
        }
        tg_backend_upload(be, d[1], g, bytes);
        double norm = sqrt(be->ops->sumsq(be, d[1], (size_t)n));
        double scale = max_norm > 0 ? TG_MIN(max_norm / (norm + 1e-6), 1.0) : 1.0;
        step.t++;
        step.grad_scale = (float)scale;
        be->ops->adamw(be, d[0], d[1], d[2], d[3], (size_t)n, &step);
        json_array_append_new(norms, json_real(norm));
    }
    json_object_set_new(out, "norms", norms);
    if (st == TG_OK) {
        tg_backend_download(be, param, d[0], bytes);
        json_object_set_new(out, "param", list_of(param, n));
    }
    for (int i = 0; i < 4; i++) tg_backend_free(be, d[i]);
    return st;
}

static tg_status eval_adamw(const json_t *in, json_t *out, tg_arena *a, tg_error *err) {
    const char *name = json_string_value(json_object_get(in, "backend"));
    tg_backend *be;
    tg_status st = tg_backend_open(&be, name ? name : "ref", 0, err);
    if (st != TG_OK) return st;
    st = run_adamw(in, out, be, a, err);
    tg_backend_close(&be);
    return st;
}

tg_status tg_rl_eval(const json_t *request, json_t **out, tg_error *err) {
    const char *op = json_string_value(json_object_get(request, "op"));
    tg_arena arena = {0};
    *out = json_object();
    tg_status st;
    if (op && !strcmp(op, "gae"))
        st = eval_gae(request, *out, &arena, err);
    else if (op && !strcmp(op, "ppo"))
        st = eval_loss(request, tg_ppo_loss, *out, &arena, err);
    else if (op && !strcmp(op, "a2c"))
        st = eval_loss(request, tg_a2c_loss, *out, &arena, err);
    else if (op && !strcmp(op, "cg"))
        st = eval_cg(request, *out, &arena, err);
    else if (op && !strcmp(op, "adamw"))
        st = eval_adamw(request, *out, &arena, err);
    else if (op && !strcmp(op, "optim"))
        st = tg_optim_eval(request, *out, err);
    else
        st = tg_fail(err, TG_DATA, "op: expected gae, ppo, a2c, cg, adamw or optim");
    if (st != TG_OK) {
        json_decref(*out);
        *out = NULL;
    }
    tg_arena_fini(&arena);
    return st;
}
