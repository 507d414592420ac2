/* Linear layers. A packed weight is the panels that the matrix product wants, one after the other, each over the whole depth. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"
#include "common/nn/bf16.h"

void tg_cpu_linear(tg_backend *be, float *y, const float *x, tg_weight w, const float *bias, int M,
                   int N, int K, bool accumulate) {
    const bool plain = w.form == TG_WEIGHT_PLAIN;
    tg_cpu_gemm(be, &(tg_gemm){.c = y,
                               .a = x,
                               .b = plain ? w.data : NULL,
                               .packed = plain ? NULL : w.data,
                               .packed_depth = K,
                               .half = w.form == TG_WEIGHT_PACKED_BF16,
                               .rounded = w.rounded,
                               .bias = bias,
                               .M = M,
                               .N = N,
                               .K = K,
                               .ldc = N,
                               .lda = K,
                               .ldb = w.tb ? K : N,
                               .tb = w.tb,
                               .accumulate = accumulate});
}

typedef struct weight_job {
    const tg_cpu_kernels *k;
    const float *w;
    void *packed;
    tg_weight weight;
    float *y;
    const int32_t *ids;
    int N, K;
    bool tb, half;
} weight_job;

static void pack_panel(void *arg, int panel) {
    enum { DEPTH = 256, MAX_COLS = 32 };
    const weight_job *j = arg;
    const int nr = *j->k->gemm_cols, n = panel * nr, cols = TG_MIN(nr, j->N - n);
    const size_t ld = (size_t)(j->tb ? j->K : j->N);
    float some[DEPTH * MAX_COLS];
    for (int k = 0; k < j->K; k += DEPTH) {
        const int depth = TG_MIN(DEPTH, j->K - k);
        const size_t steps = (size_t)tg_cpu_packed_depth(j->K, j->half);
        const size_t at = ((size_t)panel * steps + (size_t)k) * (size_t)nr;
        const float *from =
            j->w + (j->tb ? (size_t)n * ld + (size_t)k : (size_t)k * ld + (size_t)n);
        j->k->pack_cols(j->half ? some : (float *)j->packed + at, from, ld, j->tb, cols, depth);
        if (j->half) j->k->halve_cols((uint16_t *)j->packed + at, some, depth);
    }
}

void tg_cpu_weight_pack(tg_backend *be, void *packed, const float *w, int N, int K, bool tb,
                        tg_weight_form form) {
    weight_job j = {
        be->kernels, w, packed, .N = N, .K = K, .tb = tb, .half = form == TG_WEIGHT_PACKED_BF16};
    const int nr = *be->kernels->gemm_cols;
    tg_team_run(be->team, (N + nr - 1) / nr, pack_panel, &j);
}

static void copy_row(void *arg, int i) {
    const weight_job *j = arg;
    const size_t nr = (size_t)*j->k->gemm_cols, n = (size_t)j->ids[i], K = (size_t)j->K;
    const size_t at = n / nr * (size_t)tg_cpu_packed_depth(j->K, j->half) * nr, column = n % nr;
    const float *full = (const float *)j->weight.data + at;
    const uint16_t *half = (const uint16_t *)j->weight.data + at;
    float *y = j->y + (size_t)i * K;
    for (size_t k = 0; k < K; k++)
        if (j->half)
            y[k] = tg_f32_of_bf16(half[(k / 2 * nr + column) * 2 + k % 2]);
        else
            y[k] = full[k * nr + column];
}

void tg_cpu_weight_rows(tg_backend *be, float *y, tg_weight w, const int32_t *ids, int n, int N,
                        int K) {
    if (w.form == TG_WEIGHT_PLAIN) {
        TG_ASSERT(w.tb);
        tg_cpu_embed_forward(be, y, w.data, ids, n, K, false);
        return;
    }
    weight_job j = {.k = be->kernels,
                    .weight = w,
                    .y = y,
                    .ids = ids,
                    .N = N,
                    .K = K,
                    .half = w.form == TG_WEIGHT_PACKED_BF16};
    tg_team_run(be->team, n, copy_row, &j);
}
