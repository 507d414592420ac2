/* top_k comes first and gathers what it keeps, so that the rest works on few tokens; the others take tokens out by setting them to -inf. */
#include "learner/policy/warpers.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/policy/row_math.h"

#include <math.h>
#include <string.h>

tg_status tg_gen_space_init(tg_gen_space *w, int V, tg_error *err) {
    size_t n = (size_t)V;
    *w = (tg_gen_space){.row = tg_alloc_array(n, sizeof *w->row),
                        .score = tg_alloc_array(n, sizeof *w->score),
                        .e = tg_alloc_array(n, sizeof *w->e),
                        .work = tg_alloc_array(n, sizeof *w->work),
                        .blocks = tg_alloc_array((size_t)tg_row_blocks(V), sizeof *w->blocks),
                        .id = tg_alloc_array(n, sizeof *w->id)};
    if (w->row && w->score && w->e && w->work && w->blocks && w->id) return TG_OK;
    tg_gen_space_fini(w);
    return tg_fail_nomem(err, n * 5 * sizeof(float));
}

void tg_gen_space_fini(tg_gen_space *w) {
    tg_free(w->row);
    tg_free(w->score);
    tg_free(w->e);
    tg_free(w->work);
    tg_free(w->blocks);
    tg_free(w->id);
    *w = (tg_gen_space){0};
}

typedef struct job {
    const tg_gen_settings *s;
    tg_candidates *c;
    int keep;
    tg_gen_space *w;
    double sum; /* of w->e */
    float top;
} job;

/* w->e = exp of the scores, of which the largest is then 1. */
static void exponentiate(job *j) {
    j->top = tg_row_max(j->c->score, j->c->n);
    j->sum = tg_row_exp(j->c->score, j->c->n, j->top, j->w->e, NULL);
}

/* Takes out what is less probable than `least`, except the `keep` most probable: by their scores, as many probabilities may be 0. */
static void drop_below(const job *j, float least) {
    float *score = j->c->score;
    int n = j->c->n;
    if (tg_row_count(j->w->e, n, least) < j->keep)
        tg_row_drop(score, score, n, tg_row_kth_largest(score, n, TG_MIN(j->keep, n), j->w->work));
    else
        tg_row_drop(score, j->w->e, n, least);
}

/* The least probable tokens go as long as together they have at most 1 - p; of equal ones those that come first. */
static void top_p(job *j) {
    float at;
    int skipped, n = j->c->n;
    exponentiate(j);
    tg_row_mass(j->w->e, j->w->e, n, (1 - j->s->top_p) * j->sum, false, &at, &skipped);
    if (tg_row_count(j->w->e, n, at) - skipped < j->keep) {
        drop_below(j, at);
        return;
    }
    tg_row_drop(j->c->score, j->w->e, n, at);
    for (int i = 0; i < n && skipped > 0; i++) {
        if (j->w->e[i] != at) continue;
        j->c->score[i] = -INFINITY;
        skipped--;
    }
}

static void min_p(job *j) {
    exponentiate(j);
    drop_below(j, (float)j->s->min_p); /* the largest of w->e is 1 */
}

static double entropy(const job *j) {
    double lse = (double)j->top + log(j->sum), h = 0;
    for (int i = 0; i < j->c->n; i++)
        if (j->w->e[i] > 0) h -= ((double)j->c->score[i] - lse) * (double)j->w->e[i] / j->sum;
    return h;
}

/* Keeps the tokens whose information is nearest to the entropy until they have the mass. */
static void typical_p(job *j) {
    exponentiate(j);
    double lse = (double)j->top + log(j->sum), h = entropy(j);
    float *distance = j->w->work, at;
    int skipped, n = j->c->n;
    for (int i = 0; i < n; i++) distance[i] = (float)fabs(lse - (double)j->c->score[i] - h);
    tg_row_mass(distance, j->w->e, n, j->s->typical_p * j->sum, true, &at, &skipped);
    float *nearness = j->w->e, least = -at;
    for (int i = 0; i < n; i++) nearness[i] = -distance[i];
    if (tg_row_count(nearness, n, least) < j->keep) {
        float heap[TG_GEN_MAX_EOS + 1];
        least = tg_row_kth_largest(nearness, n, TG_MIN(j->keep, n), heap);
    }
    tg_row_drop(j->c->score, nearness, n, least);
}

static void epsilon_cutoff(job *j) {
    exponentiate(j);
    drop_below(j, (float)(j->s->epsilon_cutoff * j->sum));
}

static void eta_cutoff(job *j) {
    exponentiate(j);
    double epsilon = j->s->eta_cutoff;
    drop_below(j, (float)(fmin(epsilon, sqrt(epsilon) * exp(-entropy(j))) * j->sum));
}

static int top_k_of(const tg_gen_settings *s, int V, int keep) {
    int64_t k = TG_MAX(s->top_k, (int64_t)keep);
    return s->top_k > 0 && k < V ? (int)k : 0;
}

static int chosen(const tg_gen_settings *s, void (*out[])(job *)) {
    const struct {
        bool on;
        void (*run)(job *);
    } table[] = {
        {s->top_p < 1, top_p},
        {s->min_p > 0, min_p},
        {s->typical_p < 1, typical_p},
        {s->epsilon_cutoff > 0 && s->epsilon_cutoff < 1, epsilon_cutoff},
        {s->eta_cutoff > 0 && s->eta_cutoff < 1, eta_cutoff},
    };
    int n = 0;
    for (size_t i = 0; i < TG_COUNT_OF(table); i++)
        if (table[i].on) out[n++] = table[i].run;
    return n;
}

enum { MOST = 8 };

bool tg_warpers_any(const tg_gen_settings *s, int V) {
    void (*run[MOST])(job *);
    return s->temperature != 1.0 || top_k_of(s, V, 1) || chosen(s, run);
}

void tg_warp(const tg_gen_settings *s, const float *scores, int V, int keep, tg_gen_space *w,
             tg_candidates *out) {
    int k = top_k_of(s, V, keep);
    *out = (tg_candidates){w->score, k ? w->id : NULL, 0};
    if (k) {
        float least = tg_row_kth_largest(scores, V, k, w->work); /* ties with it stay */
        for (int i = 0; i < V; i++) {
            if (!(scores[i] >= least) || scores[i] == -INFINITY) continue;
            w->score[out->n] = scores[i];
            w->id[out->n++] = i;
        }
    } else {
        memcpy(w->score, scores, (size_t)V * sizeof *scores);
        out->n = V;
    }
    if (s->temperature != 1.0)
        for (int i = 0; i < out->n; i++) w->score[i] /= (float)s->temperature;
    job j = {.s = s, .c = out, .keep = keep, .w = w};
    void (*run[MOST])(job *);
    int n = chosen(s, run);
    for (int i = 0; i < n && out->n; i++) run[i](&j);
}
