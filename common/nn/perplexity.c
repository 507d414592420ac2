/* One sequence to a pass; an action is a token that the window judges. */
#include "common/nn/perplexity.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <math.h>

enum { LONGEST_WINDOW = 4096 }; /* of models without a table of positions */

typedef struct windows {
    tg_pass *pass;
    int32_t *rows; /* (window) 0, 1, … */
    float *logp;   /* (window) */
    int window;
} windows;

static int window_of(const tg_arch *arch) {
    return TG_MIN(arch->max_positions, LONGEST_WINDOW);
}

static tg_pass_caps caps_of(int window, int stride) {
    return (tg_pass_caps){.tokens = window, .seqs = 1, .actions = TG_MIN(stride, window)};
}

size_t tg_perplexity_bytes(const tg_arch *arch, int stride) {
    return tg_pass_bytes(arch, 0, caps_of(window_of(arch), stride), TG_PASS_SCORE);
}

size_t tg_perplexity_workspace(const tg_arch *arch, unsigned model_flags, int stride) {
    const tg_pass_caps caps = caps_of(window_of(arch), stride);
    return tg_pass_workspace(arch, model_flags, caps, TG_PASS_SCORE, 0, 0);
}

static void close_windows(windows *w) {
    tg_pass_destroy(&w->pass);
    tg_free(w->rows);
    tg_free(w->logp);
}

static tg_status open_windows(windows *w, tg_model *m, int stride, tg_error *err) {
    *w = (windows){.window = window_of(&m->arch)};
    w->rows = tg_alloc_array((size_t)w->window, sizeof *w->rows);
    w->logp = tg_alloc_array((size_t)w->window, sizeof *w->logp);
    tg_status st =
        w->rows && w->logp ? TG_OK : tg_fail_nomem(err, (size_t)w->window * sizeof *w->rows);
    for (int i = 0; i < w->window && st == TG_OK; i++) w->rows[i] = i;
    if (st == TG_OK)
        st = tg_pass_create(&w->pass, m, caps_of(w->window, stride), TG_PASS_SCORE, err);
    if (st != TG_OK) close_windows(w);
    return st;
}

/* *nll: of the last `judged` of n tokens, as if each had the mean of those that something stands before. */
static tg_status judge_window(windows *w, const int32_t *tokens, int n, int judged, double *nll,
                              tg_error *err) {
    const int32_t offsets[2] = {0, n};
    int first = TG_MAX(n - judged, 1), k = n - first;
    const tg_batch b = {.n_tokens = n,
                        .n_seqs = 1,
                        .n_actions = k,
                        .tokens = tokens,
                        .offsets = offsets,
                        .act_row = w->rows + first - 1,
                        .act_token = tokens + first};
    *nll = 0;
    if (k < 1) return TG_OK;
    tg_status st = tg_pass_forward(w->pass, &b, (tg_pass_out){.logp = w->logp}, err);
    for (int i = 0; i < k && st == TG_OK; i++) *nll -= (double)w->logp[i];
    *nll *= (double)judged / (double)k;
    return st;
}

tg_status tg_perplexity(tg_model *m, const int32_t *tokens, size_t n, tg_perplexity_opts opts,
                        double *out, tg_error *err) {
    TG_ASSERT(opts.stride >= 1);
    if (m->arch.kind != TG_KIND_CAUSAL || m->arch.labels)
        return tg_fail(err, TG_UNSUPPORTED,
                       "perplexity: a %s model gives a text no probability, expected a causal one",
                       m->arch.family);
    if (n < 2) return tg_fail(err, TG_DATA, "perplexity: a text of %zu tokens has none", n);
    windows w;
    tg_status st = open_windows(&w, m, opts.stride, err);
    double sum = 0;
    const size_t stride = (size_t)opts.stride;
    for (size_t i = 0; i < n && st == TG_OK; i += stride) {
        size_t end = TG_MIN(i + stride, n);
        size_t begin = i + stride > (size_t)w.window ? i + stride - (size_t)w.window : 0;
        double nll = 0;
        if (opts.stop && opts.stop(opts.arg))
            st = tg_fail(err, TG_INTERRUPTED, "stopped");
        else if (begin >= end)
            st = tg_fail(err, TG_DATA, "perplexity: stride %d is beyond the model's %d positions",
                         opts.stride, w.window);
        else
            st = judge_window(&w, tokens + begin, (int)(end - begin), (int)(end - i), &nll, err);
        sum += nll;
    }
    close_windows(&w);
    *out = exp(sum / (double)n);
    return st;
}
