/* CIDEr-D of a corpus in three rounds, each on all threads:
 *   1. a thread reads the words of its part of the items; words get the same numbers in all parts;
 *   2. a thread counts, over all items, the n-grams whose first word belongs to its shard: how many samples have them, how
 *      often a text has them, and which of a reference are in the prediction. No two shards know the same n-gram;
 *   3. a thread scores its part of the items. Sums are taken in the order of the text, whoever counted its n-grams, so
 *      that a score has the same bits for any number of threads. */
#include "env-server/metric/cider.h"

#include "common/base/alloc.h"
#include "env-server/metric/cider_texts.h"

#include <math.h>
#include <string.h>

enum { ORDERS = TG_CIDER_ORDERS, MOST_THREADS = 64 };

static void run_one(void *arg, int k) {
    tg_cider_texts *c = arg;
    c->outcomes[k].st = c->work(c, (size_t)k, &c->outcomes[k].err);
}

tg_status tg_cider_run(tg_cider_texts *c, tg_cider_fn *work, tg_error *err) {
    if (!c->team) return work(c, 0, err);
    c->work = work;
    tg_team_run(c->team, (int)c->k, run_one, c);
    for (size_t k = 0; k < c->k; k++)
        if (c->outcomes[k].st != TG_OK)
            return tg_fail(err, c->outcomes[k].st, "%s", c->outcomes[k].err.msg);
    return TG_OK;
}

/* ---- scores ------------------------------------------------------------------------------------ */

typedef struct vector {
    double *weights; /* of each n-gram at its first place, 0 at others; behind a 0 */
    uint32_t *match; /* as in an entry */
    uint32_t *at;    /* places of a shard's words */
    size_t cap, words;
    double norm[ORDERS];
} vector;

static void vector_fini(vector *v) {
    tg_free(v->weights);
    tg_free(v->match);
    tg_free(v->at);
}

/* For a text of n words. */
static tg_status make_room(vector *v, size_t n, tg_error *err) {
    if (n < v->cap) return TG_OK;
    vector_fini(v);
    size_t cap = 2 * n + 1;
    *v = (vector){.weights = tg_alloc_array(ORDERS * cap + 1, sizeof *v->weights),
                  .match = tg_alloc_array(ORDERS * cap, sizeof *v->match),
                  .at = tg_alloc_array(cap, sizeof *v->at),
                  .cap = cap};
    if (v->weights && v->match && v->at) return TG_OK;
    return tg_fail_nomem(err, cap * (ORDERS * sizeof *v->weights));
}

/* Puts the entries of a text that a shard counted to their places. */
static void collect(const tg_cider_texts *c, size_t k, vector *v, size_t text,
                    const uint32_t *words) {
    const tg_cider_shard *s = &c->shards[k];
    const tg_gram *nodes = s->grams.nodes;
    const tg_cider_entry *e = s->entries + s->starts[text], *end = s->entries + s->starts[text + 1];
    for (const tg_cider_entry *ahead = e; ahead < end; ahead++)
        __builtin_prefetch(&nodes[ahead->id]);
    size_t m = tg_cider_places(c, k, words, v->words, v->at), slot = 0;
    for (size_t order = 0; order < ORDERS && order < v->words; order++) {
        while (m && v->at[m - 1] + order >= v->words) m--;
        for (size_t i = 0; i < m; i++, e++) {
            size_t to = slot + v->at[i];
            v->weights[to + 1] = (double)e->count * c->idf[nodes[e->id].df];
            v->match[to] = e->match;
        }
        slot += v->words - order;
    }
}

static tg_status read_vector(const tg_cider_texts *c, const tg_cider_part *p, size_t t, vector *v,
                             tg_error *err) {
    size_t n = p->ends[t + 1] - p->ends[t];
    tg_status st = make_room(v, n, err);
    if (st != TG_OK) return st;
    v->words = n;
    for (size_t k = 0; k < c->k; k++) collect(c, k, v, p->first_text + t, p->ids.v + p->ends[t]);
    const double *w = v->weights + 1;
    for (size_t order = 0; order < ORDERS; order++) {
        double sum = 0;
        for (size_t i = 0; i + order < v->words; i++, w++) sum += *w * *w;
        v->norm[order] = sqrt(sum);
    }
    return TG_OK;
}

static double similarity(const vector *hyp, const vector *ref) {
    double total = 0, pairs = hyp->words ? (double)hyp->words - 1 : 0;
    double delta = pairs - (ref->words ? (double)ref->words - 1 : 0);
    double gauss = pow(M_E, -(delta * delta) / (2 * 6.0 * 6.0));
    size_t slot = 0;
    for (size_t order = 0; order < ORDERS; order++) {
        double sum = 0;
        for (size_t i = 0; i + order < ref->words; i++, slot++) {
            double w = ref->weights[slot + 1], own = hyp->weights[ref->match[slot]];
            sum += (own < w ? own : w) * w;
        }
        if (hyp->norm[order] != 0 && ref->norm[order] != 0)
            sum /= hyp->norm[order] * ref->norm[order];
        total += sum * gauss;
    }
    return total;
}

static tg_status score_part(tg_cider_texts *c, size_t k, tg_error *err) {
    const tg_cider_part *p = &c->parts[k];
    vector hyp = {0}, ref = {0};
    tg_status st = TG_OK;
    for (size_t i = p->begin, t = 0; i < p->end && st == TG_OK; i++) {
        size_t n = c->items[i].sample->n_references;
        double sum = 0;
        st = read_vector(c, p, t++, &hyp, err);
        for (size_t j = 0; j < n && st == TG_OK; j++) {
            st = read_vector(c, p, t++, &ref, err);
            if (st == TG_OK) sum += similarity(&hyp, &ref);
        }
        c->out[i] = n ? sum / ORDERS / (double)n * 10.0 : 0;
    }
    vector_fini(&hyp);
    vector_fini(&ref);
    return st;
}

/* ---- the corpus -------------------------------------------------------------------------------- */

static void *alloc_lines(size_t bytes) {
    void *p = tg_alloc_aligned(bytes, TG_CIDER_LINE);
    return p ? memset(p, 0, bytes) : NULL;
}

/* Parts of about as many bytes each; small corpora are not worth a team. */
static tg_status open_corpus(tg_cider_texts *c, int threads, tg_error *err) {
    size_t bytes = 0, seen = 0, most = 1;
    for (size_t i = 0; i < c->n; i++) bytes += 1 + c->items[i].text_len;
    if (threads == TG_METRIC_ALL_THREADS) threads = tg_team_cpus();
    if (threads > 1) most = bytes / 4096 + 1;
    c->k = most < (size_t)threads ? most : threads > 1 ? (size_t)threads : 1;
    if (c->k > MOST_THREADS) c->k = MOST_THREADS;
    c->parts = alloc_lines(c->k * sizeof *c->parts);
    c->shards = alloc_lines(c->k * sizeof *c->shards);
    c->outcomes = tg_alloc_array(c->k, sizeof *c->outcomes);
    if (!c->parts || !c->shards || !c->outcomes)
        return tg_fail_nomem(err, c->k * sizeof *c->shards);
    for (size_t k = 0, i = 0; k < c->k; k++) {
        c->parts[k].begin = i;
        while (i < c->n && (k + 1 == c->k || seen < (k + 1) * (bytes / c->k)))
            seen += 1 + c->items[i++].text_len;
        c->parts[k].end = i;
    }
    return c->k > 1 ? tg_team_create(&c->team, (int)c->k, err) : TG_OK;
}

static void close_corpus(tg_cider_texts *c) {
    for (size_t k = 0; k < c->k; k++) {
        if (c->parts) {
            tg_words_fini(&c->parts[k].words);
            tg_wids_fini(&c->parts[k].ids);
            tg_free(c->parts[k].ends);
            tg_free(c->parts[k].number);
            tg_free(c->parts[k].counts);
        }
        if (c->shards) {
            tg_grams_fini(&c->shards[k].grams);
            tg_free(c->shards[k].shared);
        }
    }
    tg_free(c->memory);
    tg_free(c->parts);
    tg_free(c->shards);
    tg_free(c->outcomes);
    tg_free(c->shard_of);
    tg_free(c->elsewhere);
    tg_team_destroy(&c->team);
}

tg_status tg_cider_score(const tg_metric_item *items, size_t n, const tg_splitter *splitter,
                         const tg_cider_df *df, int threads, double *out, tg_error *err) {
    tg_cider_texts c = {.items = items, .n = n, .splitter = splitter, .df = df, .out = out};
    double *own = NULL;
    tg_status st = open_corpus(&c, threads, err);
    if (st == TG_OK) st = tg_cider_words(&c, err);
    if (st == TG_OK) st = tg_cider_count(&c, err);
    if (st == TG_OK && !df) st = tg_cider_idf(&own, n, err);
    c.idf = df ? df->idf : own;
    if (st == TG_OK) st = tg_cider_run(&c, score_part, err);
    close_corpus(&c);
    tg_free(own);
    return st;
}
