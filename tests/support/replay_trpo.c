/* The update half of a replay for TRPO: the conjugate gradient from the recorded noise, the line search, then the critic's steps.
 *
 * Tolerances: products and direction are compared relative to their size. In f32 the iterates of two implementations part slowly, so
 * the later a product, the more it gets; a recording that says how far its own numbers lie from those in double precision
 * (update.spread) is compared within a few times that. */
#include "tests/support/replay.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/safetensors.h"

#include <math.h>
#include <string.h>

#define TIGHT 2e-5 /* relative: what f32 gives when nothing amplifies its rounding */
#define SPREADS 10
#define PARTED 0.01

typedef struct watch {
    tg_recording *rec;
    tg_actor_critic *ac;
    tg_replay_table *t;
    const tg_safetensors *file;
    double values, value_loss;
    int listed;
    tg_status st;
    tg_error *err;
} watch;

static double relative(double ours, double theirs) {
    return fabs(ours - theirs) / fmax(1e-3, fabs(theirs));
}

/* A recorded flat vector in the layout of the policy's gradients; NULL with err set. */
static float *vector(watch *w, const char *name) {
    const tg_params *params = &w->ac->policy->params;
    const json_t *names = tg_recording_at(w->rec, "update.actor_params", w->err), *v;
    const tg_st_tensor *t = tg_safetensors_find(w->file, name);
    if (!names || !t) {
        tg_fail(w->err, TG_DATA, "%s: trpo.safetensors: %s is missing", w->rec->dir, name);
        return NULL;
    }
    float *flat = tg_alloc_array(t->count, sizeof *flat);
    float *out = tg_alloc_array(params->grad_total, sizeof *out);
    w->st = flat && out ? tg_st_to_f32(t, flat, w->err) : tg_fail_nomem(w->err, 1);
    size_t at = 0, i;
    json_array_foreach(names, i, v) {
        const tg_param *p = tg_params_find(params, json_string_value(v) + strlen("policy."));
        if (w->st == TG_OK && (!p || at + p->count > t->count))
            w->st = tg_fail(w->err, TG_DATA, "%s: %s does not fit %s", w->rec->dir, name,
                            json_string_value(v));
        if (w->st != TG_OK) break;
        memcpy(out + p->grad_offset, flat + at, p->count * sizeof *flat);
        at += p->count;
    }
    tg_free(flat);
    if (w->st == TG_OK) return out;
    tg_free(out);
    return NULL;
}

/* Largest difference, in parts of the largest entry. */
static double vector_difference(watch *w, const char *name, const float *ours, size_t n) {
    float *theirs = vector(w, name);
    double worst = 0, top = 0;
    for (size_t i = 0; theirs && i < n; i++) {
        worst = fmax(worst, fabs((double)ours[i] - (double)theirs[i]));
        top = fmax(top, fabs((double)theirs[i]));
    }
    tg_free(theirs);
    return theirs ? worst / top : (double)NAN;
}

static const json_t *spread_of(const watch *w, const char *what) {
    const json_t *update = json_object_get(w->rec->root, "update");
    return json_object_get(json_object_get(update, "spread"), what);
}

/* The tolerance of a number that the conjugate gradient led to. */
static double allowed(const watch *w, const char *what, double given) {
    const json_t *v = spread_of(w, what);
    return v ? TIGHT + SPREADS * json_number_value(v) : given;
}

/* Of product i: the largest spread up to the next one and more of it, for parting does not begin at the same step everywhere. */
static double allowed_product(const watch *w, size_t i) {
    const json_t *list = spread_of(w, "products"), *v;
    if (!list) return i < 5 ? 1e-4 : i < 7 ? 1e-3 : 2e-2;
    double most = 0;
    size_t k;
    json_array_foreach(list, k, v) {
        if (k <= i + 1) most = fmax(most, json_number_value(v));
    }
    return most > PARTED ? (double)INFINITY : TIGHT + 3 * SPREADS * most;
}

static void compare_products(watch *w, const tg_trust_region_report *m) {
    static const char *const keys[] = {"v_dot_v", "v_dot_Av"};
    const json_t *list = tg_recording_at(w->rec, "update.cg_matrix_products", w->err), *v;
    tg_replay_row(w->t, "products of the solver", abs(m->n_products - (int)json_array_size(list)),
                  0);
    double floor = 1e-3;
    size_t i;
    json_array_foreach(list, i, v) {
        if ((int)i >= m->n_products) break;
        char what[64];
        double worst = 0, tolerance = allowed_product(w, i);
        snprintf(what, sizeof what, "product %zu: v.v, v.Av (relative)", i);
        if (isinf(tolerance)) {
            tg_replay_note(w->t, what, "and on: f32 leaves them open");
            break;
        }
        for (int k = 0; k < 2; k++) {
            double theirs = tg_json_f64(json_object_get(v, keys[k]), (double)NAN);
            floor = fmax(floor, 1e-3 * fabs(theirs)); /* rounding is that of the largest so far */
            worst = fmax(worst, fabs(m->products[i][k] - theirs) / fmax(floor, fabs(theirs)));
        }
        tg_replay_row(w->t, what, worst, tolerance);
    }
}

static void on_trust_region(void *arg, const tg_trust_region_report *m) {
    watch *w = arg;
    const json_t *update = json_object_get(w->rec->root, "update"), *v;
    double *adv = tg_alloc_array((size_t)m->n, sizeof *adv), worst = 0;
    if (!adv || tg_recording_numbers(w->rec, json_object_get(update, "advantages_used"),
                                     "advantages_used", adv, (size_t)m->n, w->err) != TG_OK) {
        w->st = TG_DATA;
        tg_free(adv);
        return;
    }
    for (int i = 0; i < m->n; i++) worst = fmax(worst, fabs((double)m->adv[i] - adv[i]));
    tg_free(adv);
    tg_replay_row(w->t, "advantages used", worst, 1e-5);
    tg_replay_row(
        w->t, "objective before",
        fabs(m->objective - tg_json_f64(json_object_get(update, "policy_objective"), (double)NAN)),
        1e-5);
    tg_replay_row(w->t, "objective's gradient (of its largest)",
                  vector_difference(w, "objective_grad", m->gradient, m->n_params), 1e-4);
    compare_products(w, m);
    tg_replay_row(w->t, "search direction (of its largest)",
                  vector_difference(w, "search_direction", m->direction, m->n_params),
                  allowed(w, "direction", 2e-2));
    tg_replay_row(
        w->t, "longest step (relative)",
        relative(m->longest,
                 tg_json_f64(json_object_get(update, "line_search_max_step_size"), (double)NAN)),
        allowed(w, "longest", 1e-3));
    const json_t *trials = json_object_get(update, "line_search");
    tg_replay_row(w->t, "trials", abs(m->n_trials - (int)json_array_size(trials)), 0);
    double objective = 0, kl = 0, share = 0;
    size_t i;
    json_array_foreach(trials, i, v) {
        if ((int)i >= m->n_trials) break;
        share = fmax(share, fabs(m->trials[i][0] -
                                 tg_json_f64(json_object_get(v, "backtrack_coeff"), (double)NAN)));
        objective =
            fmax(objective,
                 relative(m->trials[i][1],
                          tg_json_f64(json_object_get(v, "new_policy_objective"), (double)NAN)));
        kl =
            fmax(kl, relative(m->trials[i][2], tg_json_f64(json_object_get(v, "kl"), (double)NAN)));
    }
    tg_replay_row(w->t, "trials: share of the step", share, 1e-9);
    tg_replay_row(w->t, "trials: objective (relative)", objective, allowed(w, "objective", 2e-3));
    tg_replay_row(w->t, "trials: KL (relative)", kl, allowed(w, "kl", 2e-3));
}

static void on_minibatch(void *arg, const tg_minibatch_report *m) {
    watch *w = arg;
    const json_t *list = json_object_get(json_object_get(w->rec->root, "update"), "minibatches");
    const json_t *theirs = json_array_get(list, (size_t)w->listed++);
    double *x = tg_alloc_array((size_t)m->n, sizeof *x);
    if (w->st == TG_OK && theirs && x)
        w->st = tg_recording_numbers(w->rec, json_object_get(theirs, "values"), "values", x,
                                     (size_t)m->n, w->err);
    for (int i = 0; w->st == TG_OK && theirs && x && i < m->n; i++)
        w->values = fmax(w->values, fabs((double)m->value[i] - x[i]));
    if (theirs)
        w->value_loss =
            fmax(w->value_loss,
                 relative(m->value_loss,
                          tg_json_f64(json_object_get(theirs, "value_loss"), (double)NAN)));
    tg_free(x);
}

static void compare_logged(watch *w, const tg_update_stats *stats) {
    const json_t *logger = json_object_get(json_object_get(w->rec->root, "update"), "logger");
    for (int i = 0; i < stats->n; i++) {
        char key[96];
        snprintf(key, sizeof key, "train/%s", strchr(stats->name[i], '/') + 1);
        const json_t *v = json_object_get(logger, key);
        if (!v || (isnan(stats->value[i]) && json_is_null(v))) continue;
        double tolerance = strstr(key, "objective") ? allowed(w, "objective", 2e-3)
                           : strstr(key, "kl_div")  ? allowed(w, "kl", 2e-3)
                                                    : 2e-5;
        tg_replay_row(w->t, key, relative(stats->value[i], tg_json_f64(v, (double)NAN)), tolerance);
    }
}

tg_status tg_replay_trpo(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                         tg_error *err) {
    const json_t *list = tg_recording_at(rec, "update.minibatches", err);
    char *path = tg_path_join(rec->dir, "trpo.safetensors");
    if (!list || !path) {
        tg_free(path);
        return err->status;
    }
    tg_safetensors file;
    tg_status st = tg_safetensors_open(&file, path, err);
    tg_free(path);
    if (st != TG_OK) return st;
    watch w = {.rec = rec, .ac = ac, .t = t, .file = &file, .err = err};
    float *noise = vector(&w, "cg_noise");
    tg_order order = {
        .permutations = rec->permutations, .n_permutations = rec->n_permutations, .noise = noise};
    tg_update_stats stats;
    tg_update_probe probe = {.arg = &w, .minibatch = on_minibatch, .trust_region = on_trust_region};
    st = noise ? rec->algo->update(ac, rec->opts, rec->rollout, &order, &probe, &stats, err)
               : err->status;
    if (st == TG_OK) st = w.st;
    tg_free(noise);
    tg_safetensors_close(&file);
    if (st != TG_OK) return st;
    tg_replay_row(t, "critic: values", w.values, 5e-5);
    tg_replay_row(t, "critic: losses (relative)", w.value_loss, 1e-4);
    tg_replay_row(t, "critic: steps", abs(w.listed - (int)json_array_size(list)), 0);
    compare_logged(&w, &stats);
    return TG_OK;
}
