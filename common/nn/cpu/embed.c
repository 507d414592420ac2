/* Rows by index. Backward cuts the columns, not the rows: equal ids then meet on one thread, in
 * order. */
#include "common/nn/cpu/cpu.h"

#include "common/base/check.h"

#include <string.h>

typedef struct rows_job {
    const tg_cpu_kernels *k;
    float *y;
    const float *x;
    const int32_t *ids;
    size_t C;
    int N;
    bool accumulate;
} rows_job;

static void forward_rows(void *arg, size_t first, size_t count) {
    const rows_job *j = arg;
    for (size_t i = first; i < first + count; i++) {
        const float *row = j->x + (size_t)j->ids[i] * j->C;
        if (j->accumulate)
            j->k->add(j->y + i * j->C, row, j->C);
        else
            memcpy(j->y + i * j->C, row, j->C * sizeof *row);
    }
}

void tg_cpu_embed_forward(tg_backend *be, float *y, const float *table, const int32_t *ids, int N,
                          int C, bool accumulate) {
    rows_job j = {be->kernels, y, table, ids, (size_t)C, N, accumulate};
    if (N > 0 && C > 0) tg_cpu_for(be, (size_t)N, tg_cpu_grain(32768, C), forward_rows, &j);
}

static void backward_columns(void *arg, size_t first, size_t count) {
    const rows_job *j = arg;
    for (int i = 0; i < j->N; i++)
        j->k->add(j->y + (size_t)j->ids[i] * j->C + first, j->x + (size_t)i * j->C + first, count);
}

void tg_cpu_embed_backward(tg_backend *be, float *dtable, const float *dy, const int32_t *ids,
                           int N, int C) {
    rows_job j = {be->kernels, dtable, dy, ids, (size_t)C, N, true};
    if (N <= 0 || C <= 0) return;
    size_t grain = (tg_cpu_grain(16384, N) + 63) & ~(size_t)63;
    tg_cpu_for(be, (size_t)C, TG_MAX(grain, (size_t)128), backward_columns, &j);
}

void tg_cpu_gather_rows(tg_backend *be, float *y, const float *x, const int32_t *rows, int n,
                        int C) {
    tg_cpu_embed_forward(be, y, x, rows, n, C, false);
}

void tg_cpu_scatter_add_rows(tg_backend *be, float *dx, const float *dy, const int32_t *rows, int n,
                             int C) {
    tg_cpu_embed_backward(be, dx, dy, rows, n, C);
}

typedef struct put_job {
    const tg_cpu_kernels *k;
    void *y;
    bool half;
    const float *x;
    const int32_t *rows;
    size_t C;
} put_job;

static void put_range(void *arg, size_t first, size_t count) {
    const put_job *j = arg;
    for (size_t i = first; i < first + count; i++) {
        const size_t to = (j->rows ? (size_t)j->rows[i] : i) * j->C;
        if (j->half)
            j->k->narrow((uint16_t *)j->y + to, j->x + i * j->C, j->C);
        else
            memcpy((float *)j->y + to, j->x + i * j->C, j->C * sizeof *j->x);
    }
}

void tg_cpu_put_rows(tg_backend *be, void *y, bool half, const float *x, const int32_t *rows, int n,
                     int C) {
    put_job j = {be->kernels, y, half, x, rows, (size_t)C};
    if (n > 0 && C > 0) tg_cpu_for(be, (size_t)n, tg_cpu_grain(32768, C), put_range, &j);
}
