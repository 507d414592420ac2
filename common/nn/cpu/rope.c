/* Rotary positions: rows are spread over the team; a row's table entry serves all its heads. */
#include "common/nn/cpu/cpu.h"

typedef struct rope_job {
    void (*turn)(float *x, const float *cos, const float *sin, int R, float sign);
    float *x;
    const int32_t *positions;
    const float *table;
    tg_rope_dims d;
} rope_job;

static void turn_rows(void *arg, size_t first, size_t count) {
    const rope_job *j = arg;
    const int R = j->d.R;
    const float sign = j->d.inverse ? -1.0f : 1.0f;
    for (size_t i = first; i < first + count; i++) {
        const float *row = j->table + (size_t)j->positions[i] * (size_t)R;
        float *x = j->x + i * (size_t)j->d.ld;
        for (int h = 0; h < j->d.H; h++)
            j->turn(x + (size_t)h * (size_t)j->d.step, row, row + R / 2, R, sign);
    }
}

void tg_cpu_rope(tg_backend *be, float *x, const int32_t *positions, const float *table,
                 tg_rope_dims d) {
    rope_job j = {d.pairs ? be->kernels->rope_pairs : be->kernels->rope_half, x, positions, table,
                  d};
    if (d.N > 0) tg_cpu_for(be, (size_t)d.N, tg_cpu_grain(8192, d.R * d.H), turn_rows, &j);
}
