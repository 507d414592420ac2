/* The update half of a replay: the recorded buffer, the recorded order; then losses, gradients,
 * statistics and final weights.
 *
 * Tolerances: rows of later minibatches see weights that have drifted by rounding, so they get more
 * than the rollout's 1e-5. */
#include "tests/support/replay.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/safetensors.h"

#include <math.h>
#include <string.h>

enum {
    LOGP,
    VALUES,
    ENTROPY,
    ADV,
    RATIO,
    POLICY,
    VALUE,
    ENT,
    LOSS,
    KL,
    CLIP,
    NORM,
    TENSOR_NORM,
    LR,
    QUANTITIES
};

static const struct {
    const char *name;
    double tolerance;
} quantities[QUANTITIES] = {
    [LOGP] = {"minibatch log-probs", 5e-5},
    [VALUES] = {"minibatch values", 5e-5},
    [ENTROPY] = {"minibatch entropies", 5e-5},
    [ADV] = {"advantages used", 1e-5},
    [RATIO] = {"ratios (relative)", 5e-5},
    [POLICY] = {"policy losses", 2e-5},
    [VALUE] = {"value losses (relative)", 2e-5},
    [ENT] = {"entropy losses", 2e-5},
    [LOSS] = {"losses (relative)", 2e-5},
    [KL] = {"approx_kl", 2e-5},
    [CLIP] = {"clip fractions", 1e-6},
    [NORM] = {"gradient norms (relative)", 1e-4},
    [TENSOR_NORM] = {"gradient norms per tensor", 1e-4},
    [LR] = {"learning rates", 0},
};

typedef struct watch {
    tg_recording *rec;
    tg_actor_critic *ac;
    double worst[QUANTITIES];
    double clip_slack; /* of the clip fraction: rows at the very edge of the clip range, as a
                          fraction */
    double first_grad;
    int listed; /* minibatches seen */
    int n_first_grad;
    tg_status st; /* the first failure inside the callback */
    tg_error *err;
} watch;

static void note(watch *w, int quantity, double difference) {
    if (!(difference <= w->worst[quantity])) w->worst[quantity] = difference;
}

static double relative(double ours, double theirs) {
    return fabs(ours - theirs) / fmax(1, fabs(theirs));
}

/* ---- tensors by their recorded names ---- */

static tg_model *model_of(const tg_actor_critic *ac, const char *name, const char **own) {
    *own = name;
    if (!strcmp(name, "value_head.weight")) return ac->value;
    if (!strncmp(name, "policy.", 7)) return *own = name + 7, ac->policy;
    if (!strncmp(name, "value.", 6)) return *own = name + 6, ac->value;
    return NULL;
}

/* Owned floats of a tensor's weights or gradients; NULL with err set. */
static float *tensor(const tg_actor_critic *ac, const char *name, bool grad, size_t *count,
                     tg_error *err) {
    const char *own;
    tg_model *m = model_of(ac, name, &own);
    const tg_param *p = m ? tg_params_find(&m->params, own) : NULL;
    if (!p) {
        tg_fail(err, TG_DATA, "the networks have no tensor %s", name);
        return NULL;
    }
    float *x = tg_alloc_array(p->count, sizeof(float));
    if (!x) {
        tg_fail_nomem(err, p->count * sizeof(float));
        return NULL;
    }
    *count = p->count;
    tg_status st =
        grad ? tg_model_get_grad(m, own, x, p->count, err) : tg_model_get(m, own, x, p->count, err);
    if (st == TG_OK) return x;
    tg_free(x);
    return NULL;
}

/* Is entry i of this tensor a key bias? Its exact gradient is zero, so what moves it is rounding.
 */
static bool is_key_bias(const char *name, size_t i, size_t count) {
    const char *end = "attn.c_attn.bias";
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end) && i >= count / 3 && i < 2 * count / 3;
}

/* ---- every minibatch ---- */

static tg_status compare_rows(watch *w, const json_t *theirs, const tg_minibatch_report *m) {
    static const char *const keys[] = {"log_prob", "values", "entropy", "advantages_used", "ratio"};
    const float *const ours[] = {m->logp, m->value, m->entropy, m->adv, NULL};
    double *x = tg_alloc_array((size_t)m->n, sizeof *x);
    if (!x) return tg_fail_nomem(w->err, (size_t)m->n * sizeof *x);
    tg_status st = TG_OK;
    int edge = 0;
    for (int q = 0; st == TG_OK && q <= RATIO; q++) {
        if (!json_object_get(theirs, keys[q])) continue;
        st = tg_recording_numbers(w->rec, json_object_get(theirs, keys[q]), keys[q], x,
                                  (size_t)m->n, w->err);
        for (int i = 0; st == TG_OK && i < m->n; i++) {
            double mine = q == RATIO ? exp((double)m->logp[i] - w->rec->row_logp[m->rows[i]])
                                     : (double)ours[q][i];
            note(w, q, q == RATIO ? relative(mine, x[i]) : fabs(mine - x[i]));
            if (q == RATIO) edge += fabs(fabs(x[i] - 1) - w->rec->clip_range) < 1e-5;
        }
    }
    tg_free(x);
    w->clip_slack = fmax(w->clip_slack, (double)edge / m->n);
    return st;
}

static tg_status compare_norms(watch *w, const json_t *theirs) {
    const json_t *names = tg_recording_at(w->rec, "update.tensors_with_gradient", w->err), *name;
    const json_t *norms = json_object_get(theirs, "grad_norm_per_tensor_before_clip");
    if (!names) return w->err->status;
    double global = tg_json_f64(json_object_get(theirs, "grad_norm_before_clip"), (double)NAN);
    note(w, NORM, relative(tg_optim_grad_norm(w->ac->optim), global));
    if (!norms) return TG_OK;
    size_t k;
    json_array_foreach(names, k, name) {
        size_t n;
        float *g = tensor(w->ac, json_string_value(name), true, &n, w->err);
        if (!g) return w->err->status;
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
        tg_free(g);
        note(w, TENSOR_NORM,
             relative(sqrt(sum), tg_json_f64(json_array_get(norms, k), (double)NAN)));
    }
    return TG_OK;
}

static tg_status compare_first_gradient(watch *w) {
    char *path = tg_path_join(w->rec->dir, "grad_first_minibatch.safetensors");
    if (!path) return tg_fail_nomem(w->err, 1);
    tg_safetensors file;
    tg_status st = TG_OK;
    if (tg_path_exists(path) && (st = tg_safetensors_open(&file, path, w->err)) == TG_OK) {
        for (size_t k = 0; st == TG_OK && k < file.n; k++) {
            const tg_st_tensor *t = &file.tensors[k];
            size_t n;
            float *ours = tensor(w->ac, t->name, true, &n, w->err);
            float *theirs = tg_alloc_array(t->count, sizeof(float));
            if (!ours || !theirs || n != t->count)
                st = ours ? tg_fail(w->err, TG_DATA, "%s: %s has %zu entries", path, t->name,
                                    t->count)
                          : w->err->status;
            if (st == TG_OK) st = tg_st_to_f32(t, theirs, w->err);
            for (size_t i = 0; st == TG_OK && i < n; i++)
                w->first_grad = fmax(w->first_grad, fabs((double)ours[i] - (double)theirs[i]));
            w->n_first_grad += (int)n;
            tg_free(ours);
            tg_free(theirs);
        }
        tg_safetensors_close(&file);
    }
    tg_free(path);
    return st;
}

static void on_minibatch(void *arg, const tg_minibatch_report *m) {
    watch *w = arg;
    if (w->st != TG_OK) return;
    const json_t *list = json_object_get(json_object_get(w->rec->root, "update"), "minibatches");
    const json_t *theirs = json_array_get(list, (size_t)w->listed);
    w->listed++;
    if (!theirs) return; /* more steps than recorded: reported by count */
    if (json_integer_value(json_object_get(theirs, "epoch")) != m->epoch ||
        json_integer_value(json_object_get(theirs, "batch")) != m->batch) {
        w->st = tg_fail(w->err, TG_DATA, "minibatch %d is epoch %d, batch %d: recorded as another",
                        w->listed - 1, m->epoch, m->batch);
        return;
    }
    const struct {
        int quantity;
        const char *key;
        double ours;
    } scalars[] = {
        {POLICY, "policy_loss", m->policy_loss}, {VALUE, "value_loss", m->value_loss},
        {ENT, "entropy_loss", m->entropy_loss},  {LOSS, "loss", m->loss},
        {KL, "approx_kl", m->approx_kl},         {CLIP, "clip_fraction", m->clip_fraction},
        {LR, "lr", w->rec->learning_rate},
    };
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        if (!json_object_get(theirs, scalars[i].key)) continue; /* A2C has no clipping */
        double want = tg_json_f64(json_object_get(theirs, scalars[i].key), (double)NAN);
        note(w, scalars[i].quantity, relative(scalars[i].ours, want));
    }
    w->st = compare_rows(w, theirs, m);
    if (w->st == TG_OK) w->st = compare_norms(w, theirs);
    if (w->st == TG_OK && w->listed == 1) w->st = compare_first_gradient(w);
}

/* ---- at the end ---- */

static void compare_stats(const tg_recording *rec, const tg_update_stats *stats,
                          tg_replay_table *t) {
    const json_t *info = json_object_get(json_object_get(rec->root, "update"), "training_info"), *v;
    const char *key;
    json_object_foreach((json_t *)info, key, v) {
        double ours = (double)NAN, want = tg_json_f64(v, (double)NAN);
        for (int i = 0; i < stats->n; i++)
            if (!strcmp(stats->name[i], key)) ours = stats->value[i];
        bool both_nan = isnan(ours) && isnan(want);
        tg_replay_row(t, key, both_nan ? 0 : relative(ours, want), 2e-5);
    }
}

/* Criterion of the recordings for AdamW: key biases apart, 99.9 % within 1e-5 and all within 3e-4; more by a few times what a recording
 * says that its own precision left open. */
static tg_status compare_final(const tg_recording *rec, const tg_actor_critic *ac,
                               tg_replay_table *t, tg_error *err) {
    char *path = tg_path_join(rec->dir, "final.safetensors");
    if (!path) return tg_fail_nomem(err, 1);
    tg_safetensors file;
    tg_status st = tg_safetensors_open(&file, path, err);
    tg_free(path);
    if (st != TG_OK) return st;
    const json_t *spread = json_object_get(json_object_get(rec->root, "update"), "spread");
    double open = 10 * tg_json_f64(json_object_get(spread, "final"), 0);
    size_t all = 0, far = 0;
    double worst = 0, key_worst = 0;
    for (size_t k = 0; st == TG_OK && k < file.n; k++) {
        const tg_st_tensor *s = &file.tensors[k];
        size_t n = 0;
        float *ours = tensor(ac, s->name, false, &n, err),
              *theirs = tg_alloc_array(s->count, sizeof(float));
        if (!ours)
            st = err->status;
        else if (!theirs || n != s->count)
            st = tg_fail(err, TG_DATA, "final weights: %s has another size", s->name);
        if (st == TG_OK) st = tg_st_to_f32(s, theirs, err);
        for (size_t i = 0; st == TG_OK && i < n; i++) {
            double d = fabs((double)ours[i] - (double)theirs[i]);
            double *max = is_key_bias(s->name, i, n) ? &key_worst : &worst;
            if (!(d <= *max)) *max = d;
            if (max == &key_worst) continue;
            all++;
            far += !(d <= 1e-5 + open);
        }
        tg_free(ours);
        tg_free(theirs);
    }
    tg_safetensors_close(&file);
    if (st != TG_OK) return st;
    char text[96];
    tg_replay_row(t, "final weights", worst, 3e-4 + open);
    tg_replay_row(t, "final weights, share beyond 1e-5", all ? (double)far / (double)all : 1, 1e-3);
    snprintf(text, sizeof text, "%.2e (not compared: their exact gradient is zero)", key_worst);
    tg_replay_note(t, "final key biases", text);
    return TG_OK;
}

static void take_buffer(tg_recording *rec) {
    tg_rollout *r = rec->rollout;
    for (int i = 0; i < r->n_rows; i++) {
        r->row_logp[i] = (float)rec->row_logp[i];
        r->row_value[i] = (float)rec->row_value[i];
        r->adv[i] = (float)rec->row_adv[i];
        r->ret[i] = (float)rec->row_ret[i];
    }
}

tg_status tg_replay_update(tg_recording *rec, tg_actor_critic *ac, tg_replay_table *t,
                           tg_error *err) {
    const json_t *list = tg_recording_at(rec, "update.minibatches", err);
    const json_t *evaluated = tg_recording_at(rec, "update.minibatches_evaluated", err);
    if (!list || !evaluated) return err->status;
    take_buffer(rec);
    if (rec->algo->critic_only) {
        tg_status st = tg_replay_trpo(rec, ac, t, err);
        return st == TG_OK ? compare_final(rec, ac, t, err) : st;
    }
    watch w = {.rec = rec, .ac = ac, .err = err};
    tg_order order = {.permutations = rec->permutations, .n_permutations = rec->n_permutations};
    tg_update_stats stats;
    tg_update_probe probe = {.arg = &w, .minibatch = on_minibatch};
    tg_status st = rec->algo->update(ac, rec->opts, rec->rollout, &order, &probe, &stats, err);
    if (st != TG_OK) return st;
    if (w.st != TG_OK) return w.st;
    tg_replay_row(t, "first minibatch: ratio - 1", stats.first_ratio_error, 1e-5);
    tg_replay_row(t, "first minibatch: clip fraction", stats.first_clip_fraction, 0);
    for (int q = 0; q < QUANTITIES; q++)
        tg_replay_row(t, quantities[q].name, w.worst[q],
                      quantities[q].tolerance + (q == CLIP ? w.clip_slack : 0));
    if (w.n_first_grad) tg_replay_row(t, "first gradient", w.first_grad, 1e-5);
    tg_replay_row(t, "optimizer steps", abs(stats.minibatches - (int)json_array_size(list)), 0);
    int more = stats.stopped + stats.skipped; /* evaluated without a step */
    tg_replay_row(t, "minibatches evaluated",
                  fabs(stats.minibatches + more - json_number_value(evaluated)), 0);
    compare_stats(rec, &stats, t);
    return compare_final(rec, ac, t, err);
}
