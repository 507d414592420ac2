/* Beam search as in transformers 5.22 (_beam_search), sums in float as there. The rows come in as logits; processors and warpers see
 * log-probs. */
#include "learner/policy/beam_impl.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "learner/policy/mask.h"
#include "learner/policy/processors.h"
#include "learner/policy/row_math.h"

#include <math.h>
#include <string.h>

/* ---- making and starting ---------------------------------------------------------------------- */

static tg_status make_storage(tg_beams *b, tg_error *err) {
    size_t n = (size_t)b->n_beams, pool = 3 * n + 1, len = (size_t)b->max_len + 1;
    b->pool = tg_alloc_array(pool, sizeof *b->pool);
    int32_t *tokens = tg_alloc_array(pool * len, 3 * sizeof *tokens);
    b->storage = tokens;
    b->beam = tg_alloc_array(n, sizeof *b->beam);
    b->next = tg_alloc_array(n, sizeof *b->next);
    b->finished = tg_alloc_array(n, sizeof *b->finished);
    b->ranked = tg_alloc_array(n, sizeof *b->ranked);
    b->live = tg_alloc_array(n, sizeof *b->live);
    b->parent = tg_alloc_array(n, sizeof *b->parent);
    b->sum = tg_alloc_array(n, sizeof *b->sum);
    b->groups = tg_alloc_array((size_t)b->n_groups, sizeof *b->groups);
    b->candidates = tg_alloc_array((size_t)b->keep, sizeof *b->candidates);
    b->ended = tg_alloc_array((size_t)b->keep, sizeof *b->ended);
    b->chosen = tg_alloc_array(n, sizeof *b->chosen);
    if (!b->pool || !tokens || !b->beam || !b->next || !b->finished || !b->ranked || !b->live ||
        !b->parent || !b->sum || !b->groups || !b->candidates || !b->ended || !b->chosen)
        return tg_fail_nomem(err, pool * len * 12);
    for (size_t i = 0; i < pool; i++) {
        b->pool[i].tokens = tokens + i * 3 * len;
        b->pool[i].logp = (void *)(b->pool[i].tokens + len);
        b->pool[i].step = b->pool[i].logp + len;
    }
    for (size_t i = 0; i < n; i++) {
        b->beam[i] = &b->pool[i];
        b->next[i] = &b->pool[n + i];
        b->finished[i] = &b->pool[2 * n + i];
    }
    b->spare = &b->pool[3 * n];
    return TG_OK;
}

tg_status tg_beams_create(tg_beams **out, const tg_gen_settings *s, int V, int max_len,
                          tg_error *err) {
    *out = NULL;
    tg_beams *b = tg_alloc(sizeof *b);
    if (!b) return tg_fail_nomem(err, sizeof *b);
    b->s = s;
    b->V = V;
    b->max_len = max_len;
    b->n_beams = (int)s->num_beams;
    b->n_groups = (int)s->num_beam_groups;
    b->done = true;
    /* so many that as many as there are beams do not end */
    b->keep = TG_MAX(2, 1 + s->n_eos) * (b->n_beams / b->n_groups);
    tg_status st = make_storage(b, err);
    if (st != TG_OK) tg_beams_destroy(&b);
    *out = b;
    return st;
}

void tg_beams_destroy(tg_beams **bp) {
    tg_beams *b = *bp;
    if (!b) return;
    tg_free(b->pool);
    tg_free(b->storage);
    tg_free(b->beam);
    tg_free(b->next);
    tg_free(b->finished);
    tg_free(b->ranked);
    tg_free(b->live);
    tg_free(b->parent);
    tg_free(b->sum);
    tg_free(b->groups);
    tg_free(b->candidates);
    tg_free(b->ended);
    tg_free(b->chosen);
    tg_free(b);
    *bp = NULL;
}

void tg_beams_start(tg_beams *b, const tg_beam_prompt *p) {
    TG_ASSERT(p->n >= 1 && p->n + p->max_new <= b->max_len + 1);
    b->p = *p;
    b->step = b->n_ranked = b->dead = 0;
    b->done = false;
    b->improvable = true;
    int size = b->n_beams / b->n_groups;
    for (int g = 0; g < b->n_groups; g++)
        b->groups[g] = (tg_beam_group){.first = g * size, .n = size, .worst = 1e9};
    for (int i = 0; i < b->n_beams; i++) {
        memcpy(b->beam[i]->tokens, p->tokens, (size_t)p->n * sizeof *p->tokens);
        b->beam[i]->n = p->n;
        b->live[i] = true;
        b->parent[i] = 0;
        /* all continue the same row: only one of them may count */
        b->sum[i] = i % size ? TG_BEAM_NONE : 0;
    }
}

void tg_beams_allow(tg_beams *b, const uint32_t *const *allowed) {
    b->allowed = allowed;
}

bool tg_beams_done(const tg_beams *b) {
    return b->done;
}

tg_beam tg_beams_get(const tg_beams *b, int beam) {
    return (tg_beam){!b->done && b->live[beam], b->parent[beam], b->beam[beam]};
}

const tg_hypothesis *tg_beams_result(const tg_beams *b, int k) {
    return k < b->n_ranked ? b->ranked[k] : NULL;
}

/* ---- candidates -------------------------------------------------------------------------------- */

static void offer(tg_beams *b, const tg_candidate *c) {
    int at = b->n_candidates;
    if (at == b->keep && !(c->key > b->candidates[at - 1].key)) return;
    if (at < b->keep) b->n_candidates++;
    if (at == b->keep) at--;
    for (; at > 0 && c->key > b->candidates[at - 1].key; at--)
        b->candidates[at] = b->candidates[at - 1];
    b->candidates[at] = *c;
}

/* Log-probs of the row into w->row, and log(sum exp) - the two parts by which they were made. */
static tg_status normalise(const tg_beams *b, const float *logits, tg_gen_space *w, float *top,
                           float *log_sum, tg_error *err) {
    *top = tg_row_max(logits, b->V);
    if (!isfinite(*top) && !b->s->remove_invalid_values)
        return tg_fail(
            err, TG_DATA,
            "the model gives no finite distribution at token %d (NaN or infinite logits): did "
            "training diverge? A lower learning rate, or an earlier checkpoint, may help",
            b->p.n + b->step);
    *log_sum = (float)log(tg_row_exp(logits, b->V, *top, NULL, NULL));
    for (int i = 0; i < b->V; i++) w->row[i] = logits[i] - *top - *log_sum;
    return TG_OK;
}

/* Each earlier group's choice of this step makes its token dearer. */
static void diversify(const tg_beams *b, float *row, const int32_t *tokens, int n) {
    for (int i = 0; i < n; i++) {
        int times = 0;
        for (int k = 0; k < n; k++) times += tokens[k] == tokens[i] ? (k < i ? n + 1 : 1) : 0;
        if (times > n || tokens[i] < 0 || tokens[i] >= b->V) continue; /* was counted before */
        row[tokens[i]] -= (float)b->s->diversity_penalty * (float)times;
    }
}

static void renormalise(tg_candidates *c) {
    float top = tg_row_max(c->score, c->n);
    if (!isfinite(top)) return;
    float log_sum = (float)log(tg_row_exp(c->score, c->n, top, NULL, NULL));
    for (int i = 0; i < c->n; i++) c->score[i] = c->score[i] - top - log_sum;
}

/* Processed and, when sampling, warped scores of beam i. */
static void shape(const tg_beams *b, int i, tg_gen_space *w, tg_candidates *out) {
    const tg_gen_context c = {.tokens = b->beam[i]->tokens,
                              .n = b->beam[i]->n,
                              .n_prompt = b->p.n,
                              .max_new = b->p.max_new,
                              .source = b->p.source,
                              .n_source = b->p.n_source};
    if (tg_processors_any(b->s)) tg_process(b->s, &c, w->row, b->V, w->work);
    if (b->allowed) tg_mask_forbid(w->row, b->allowed[i], b->V);
    *out = (tg_candidates){w->row, NULL, b->V};
    if (b->s->do_sample && tg_warpers_any(b->s, b->V))
        tg_warp(b->s, w->row, b->V, TG_MAX(b->s->n_eos, 1) + 1, w, out);
    if (b->s->renormalize_logits) renormalise(out);
}

/* Sampling without replacement: the largest of sum + Gumbel noise (Vieira 2014) are a draw in proportion to exp(sum). */
static double gumbel(tg_rng *r) {
    double u = tg_rng_uniform(r);
    return -log(-log(u > 0 ? u : 0x1p-54));
}

tg_status tg_beams_gather(tg_beams *b, const tg_beam_group *g, const float *const *rows,
                          const int32_t *penalised, int n, tg_gen_space *w, tg_error *err) {
    tg_rng noise = tg_rng_at(b->p.seed, b->p.domain, b->p.number, (uint64_t)b->step);
    b->n_candidates = 0;
    for (int i = g->first; i < g->first + g->n; i++) {
        if (!b->live[i]) continue;
        float top = 0, log_sum = 0;
        tg_status st = normalise(b, rows[i], w, &top, &log_sum, err);
        if (st != TG_OK) return st;
        if (n && b->s->diversity_penalty > 0) diversify(b, w->row, penalised, n);
        tg_candidates c;
        shape(b, i, w, &c);
        for (int k = 0; k < c.n; k++) {
            if (!(c.score[k] > -INFINITY)) continue;
            float sum = c.score[k] + b->sum[i];
            double key = b->s->do_sample ? (double)sum + gumbel(&noise) : (double)sum;
            if (b->n_candidates == b->keep && !(key > b->candidates[b->keep - 1].key)) continue;
            int32_t token = c.id ? c.id[k] : k;
            offer(b, &(tg_candidate){.key = key,
                                     .sum = sum,
                                     .step = c.score[k],
                                     .logp = rows[i][token] - top - log_sum,
                                     .beam = i,
                                     .token = token});
        }
    }
    if (!b->n_candidates && !b->dead) b->dead = b->p.n + b->step;
    return TG_OK;
}

tg_status tg_beams_enough(const tg_beams *b, tg_error *err) {
    if (!b->dead || b->n_ranked >= (int)b->s->num_return_sequences) return TG_OK;
    return tg_fail(err, TG_DATA, "every token is forbidden at token %d: %s", b->dead,
                   b->allowed ? TG_MASK_ADVICE : "generation_kwargs forbid too many");
}

tg_gen_end tg_beams_ends(const tg_beams *b, const tg_candidate *c) {
    tg_hypothesis *h = b->beam[c->beam];
    h->tokens[h->n] = c->token;
    return tg_gen_ends(b->s, h->tokens, h->n + 1, b->p.n, b->p.max_new);
}

void tg_beams_extend(const tg_beams *b, tg_hypothesis *h, const tg_candidate *c) {
    const tg_hypothesis *from = b->beam[c->beam];
    size_t n = (size_t)from->n, n_new = n - (size_t)b->p.n;
    memcpy(h->tokens, from->tokens, n * sizeof *h->tokens);
    memcpy(h->logp, from->logp, n_new * sizeof *h->logp);
    memcpy(h->step, from->step, n_new * sizeof *h->step);
    h->tokens[n] = c->token;
    h->logp[n_new] = c->logp;
    h->step[n_new] = c->step;
    h->n = from->n + 1;
    h->score = (double)c->sum;
    h->end = TG_END_NONE;
}

/* ---- plain search ------------------------------------------------------------------------------ */

static float length_factor(const tg_beams *b, int n_new) {
    return (float)pow((double)n_new, b->s->length_penalty);
}

/* A sum of log-probs, and not one that stands for none. A negative length_penalty multiplies scores: those of long texts may be smaller
 * than TG_BEAM_NONE, and are scores still (transformers returns its placeholders there). */
static bool is_real(float sum) {
    return sum > TG_BEAM_NONE / 2;
}

/* Keeps the list of finished ones sorted, best first. */
static void finish(tg_beams *b, const tg_candidate *c, tg_gen_end end) {
    tg_beam_group *g = &b->groups[0];
    float score = c->sum / length_factor(b, b->step + 1);
    int at = g->n_finished;
    if (at == g->n && !(score > (float)b->finished[at - 1]->score)) return;
    if (at < g->n && !(score > TG_BEAM_NONE) && !is_real(c->sum)) return;
    tg_hypothesis *h = b->spare;
    tg_beams_extend(b, h, c);
    h->score = (double)score;
    h->end = end;
    if (at == g->n)
        at--;
    else
        g->n_finished++;
    b->spare = b->finished[at];
    for (; at > 0 && h->score > b->finished[at - 1]->score; at--)
        b->finished[at] = b->finished[at - 1];
    b->finished[at] = h;
}

/* The running beams of the next step: the best of those that go on. */
static int run_on(tg_beams *b, const bool *ended) {
    int n = 0;
    for (int i = 0; i < b->n_candidates; i++) {
        const tg_candidate *c = &b->candidates[i];
        if (ended[i]) continue;
        if (n == b->n_beams && !(c->sum > (float)b->next[n - 1]->score)) continue;
        int at = n < b->n_beams ? n++ : n - 1;
        tg_hypothesis *h = b->next[at];
        tg_beams_extend(b, h, c);
        int parent = c->beam;
        for (; at > 0 && h->score > b->next[at - 1]->score; at--) {
            b->next[at] = b->next[at - 1];
            b->parent[at] = b->parent[at - 1];
        }
        b->next[at] = h;
        b->parent[at] = parent;
    }
    tg_hypothesis **old = b->beam;
    b->beam = b->next;
    b->next = old;
    for (int i = 0; i < b->n_beams; i++) {
        b->live[i] = i < n;
        b->sum[i] = i < n ? (float)b->beam[i]->score : TG_BEAM_NONE;
    }
    return n;
}

/* Whether the best running beam could still displace a finished one. */
static bool can_improve(const tg_beams *b) {
    bool all = b->groups[0].n_finished == b->n_beams;
    if (!all && is_real(b->sum[0])) return true;
    bool at_limit = b->s->early == TG_STOP_NEVER && b->s->length_penalty > 0;
    float best = b->sum[0] / length_factor(b, at_limit ? b->p.max_new : b->step);
    return best > (all ? (float)b->finished[b->n_beams - 1]->score : TG_BEAM_NONE);
}

static tg_status plain_step(tg_beams *b, const float *const *rows, tg_gen_space *w, tg_error *err) {
    tg_beam_group *g = &b->groups[0];
    tg_status st = tg_beams_gather(b, g, rows, NULL, 0, w, err);
    if (st != TG_OK) return st;
    bool early = b->s->early == TG_STOP_EARLY;
    bool closed = !b->improvable || (early && g->n_finished == g->n);
    bool *ended = b->ended;
    int n_ended = 0;
    for (int i = 0; i < b->n_candidates; i++) {
        tg_gen_end end = tg_beams_ends(b, &b->candidates[i]);
        ended[i] = end != TG_END_NONE;
        n_ended += ended[i];
        if (i < b->n_beams && ended[i] && !closed) finish(b, &b->candidates[i], end);
    }
    bool over = n_ended == b->n_candidates;
    int running = run_on(b, ended);
    b->step++;
    b->improvable = b->improvable && running && can_improve(b);
    b->done = over || !b->improvable || (early && g->n_finished == g->n);
    if (!b->done) return TG_OK;
    b->n_ranked = TG_MIN(g->n_finished, (int)b->s->num_return_sequences);
    for (int i = 0; i < b->n_ranked; i++) b->ranked[i] = b->finished[i];
    return tg_beams_enough(b, err);
}

tg_status tg_beams_step(tg_beams *b, const float *const *rows, tg_gen_space *w, tg_error *err) {
    TG_ASSERT(!b->done);
    return b->n_groups > 1 ? tg_group_beams_step(b, rows, w, err) : plain_step(b, rows, w, err);
}
