#include "learner/policy/sample.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

/* ---- processors --------------------------------------------------------------------------------
 */

/* Each distinct earlier token once: a positive logit is divided by the penalty, a negative one
 * multiplied. `original` keeps the untouched values so that a token seen twice is penalised once.
 */
static void repetition_penalty(float *logits, const float *original, int V, const int32_t *history,
                               int n, double penalty) {
    for (int i = 0; i < n; i++) {
        if (history[i] < 0 || history[i] >= V) continue;
        float x = original[history[i]];
        logits[history[i]] = x < 0 ? x * (float)penalty : x / (float)penalty;
    }
}

/* Bans every token that would complete an n-gram already in the history. */
static void no_repeat_ngram(float *logits, int V, const int32_t *history, int n, int64_t size) {
    if (n + 1 < size) return;
    const int32_t *prefix = history + n - (size - 1);
    for (int64_t i = 0; i + size <= n; i++) {
        if (memcmp(history + i, prefix, (size_t)(size - 1) * sizeof *history)) continue;
        int32_t banned = history[i + size - 1];
        if (banned >= 0 && banned < V) logits[banned] = -INFINITY;
    }
}

static void process(const tg_gen_settings *s, float *logits, const float *original, int V,
                    const int32_t *history, int n_history, int n_new) {
    if (s->repetition_penalty != 1.0)
        repetition_penalty(logits, original, V, history, n_history, s->repetition_penalty);
    if (s->no_repeat_ngram_size > 0)
        no_repeat_ngram(logits, V, history, n_history, s->no_repeat_ngram_size);
    if (s->eos_id >= 0 && s->eos_id < V && n_new < tg_gen_min_new(s, n_history - n_new))
        logits[s->eos_id] = -INFINITY;
}

/* ---- warpers -----------------------------------------------------------------------------------
 */

/* The k-th largest of a (n) by quickselect; a is reordered. 1 <= k <= n. */
static float kth_largest(float *a, int n, int k) {
    int lo = 0, hi = n - 1;
    while (lo < hi) {
        float pivot = a[lo + (hi - lo) / 2];
        int i = lo, j = hi;
        while (i <= j) {
            while (a[i] > pivot) i++;
            while (a[j] < pivot) j--;
            if (i <= j) {
                float t = a[i];
                a[i++] = a[j];
                a[j--] = t;
            }
        }
        if (k - 1 <= j)
            hi = j;
        else if (k - 1 >= i)
            lo = i;
        else
            break;
    }
    return a[k - 1];
}

static void keep_top_k(float *logits, int V, int64_t k, float *scratch) {
    if (k <= 0 || k >= V) return;
    memcpy(scratch, logits, (size_t)V * sizeof *scratch);
    float least = kth_largest(scratch, V, (int)k); /* ties with the k-th stay, as in transformers */
    for (int i = 0; i < V; i++)
        if (logits[i] < least) logits[i] = -INFINITY;
}

static float max_of(const float *x, int n) {
    float m = -INFINITY;
    for (int i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* Keeps the most probable tokens until their mass passes p; at least one. The threshold is found by
 * bisection over the kept count: mass of the tokens strictly above a logit is monotone in it, so no
 * full sort is needed. */
static void keep_top_p(float *logits, int V, double p, float *scratch) {
    if (p >= 1.0) return;
    float top = max_of(logits, V);
    double total = 0;
    for (int i = 0; i < V; i++) total += exp((double)logits[i] - (double)top);
    double budget = p * total;
    /* A token is removed when the mass of the tokens before it (larger logits) exceeds the budget.
     */
    int n = 0;
    for (int i = 0; i < V; i++)
        if (isfinite(logits[i])) scratch[n++] = logits[i];
    int lo = 1, hi = n; /* smallest count whose mass exceeds the budget */
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        float bound = kth_largest(scratch, n, mid);
        double mass = 0;
        for (int i = 0; i < n; i++)
            if (scratch[i] >= bound) mass += exp((double)scratch[i] - (double)top);
        if (mass > budget)
            hi = mid;
        else
            lo = mid + 1;
    }
    if (n == 0) return;
    float least = kth_largest(scratch, n, lo);
    for (int i = 0; i < V; i++)
        if (logits[i] < least) logits[i] = -INFINITY;
}

static void warp(const tg_gen_settings *s, float *logits, int V, float *scratch) {
    if (s->temperature != 1.0)
        for (int i = 0; i < V; i++) logits[i] /= (float)s->temperature;
    keep_top_k(logits, V, s->top_k, scratch);
    keep_top_p(logits, V, s->top_p, scratch);
}

/* ---- draw --------------------------------------------------------------------------------------
 */

static double log_sum_exp(const float *x, int n, float *top) {
    *top = max_of(x, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)expf(x[i] - *top);
    /* cppcheck-suppress invalidFunctionArg ; n > 0 */
    return (double)*top + log(sum);
}

static int argmax(const float *x, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static int draw(const float *logits, int V, float top, double u) {
    double total = 0;
    for (int i = 0; i < V; i++)
        if (logits[i] > -INFINITY) total += (double)expf(logits[i] - top);
    double target = u * total, seen = 0;
    int last = -1;
    for (int i = 0; i < V; i++) {
        if (!(logits[i] > -INFINITY)) continue;
        last = i;
        seen += (double)expf(logits[i] - top);
        if (seen > target) return i;
    }
    return last; /* rounding at u close to 1 */
}

tg_status tg_sample(const tg_gen_settings *s, float *logits, int V, const int32_t *history,
                    int n_history, int n_new, double u, float *scratch, tg_draw *out,
                    tg_error *err) {
    float top;
    double lse = log_sum_exp(logits, V, &top);
    if (!isfinite(lse))
        return tg_fail(
            err, TG_DATA,
            "the model gives no finite distribution at token %d (NaN or infinite logits)",
            n_history);
    memcpy(scratch, logits, (size_t)V * sizeof *scratch);
    process(s, logits, scratch, V, history, n_history, n_new);
    float *original = scratch;
    if (!s->do_sample) {
        out->token = argmax(logits, V);
        if (!(logits[out->token] > -INFINITY))
            return tg_fail(err, TG_DATA, "every token is forbidden at token %d", n_history);
        out->logp = (float)((double)original[out->token] - lse);
        out->sample_logp = 0;
        return TG_OK;
    }
    float *warped_scratch = scratch + V;
    warp(s, logits, V, warped_scratch);
    float warped_top;
    double warped_lse = log_sum_exp(logits, V, &warped_top);
    if (!isfinite(warped_lse))
        return tg_fail(err, TG_DATA, "every token is forbidden at token %d", n_history);
    out->token = draw(logits, V, warped_top, u);
    out->logp = (float)((double)original[out->token] - lse);
    out->sample_logp = (float)((double)logits[out->token] - warped_lse);
    return TG_OK;
}
