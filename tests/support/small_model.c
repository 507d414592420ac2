/* See small_model.h. */
#include "tests/support/small_model.h"

#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tg_arch tg_small_arch(void) {
    return (tg_arch){.family = "gpt2",
                     .n_layers = 2,
                     .n_heads = 2,
                     .n_kv_heads = 2,
                     .head_dim = 4,
                     .width = 8,
                     .mlp_width = 32,
                     .vocab_size = 11,
                     .max_positions = 7,
                     .norm_eps = 1e-5f,
                     .tied_head = true,
                     .bos_id = 10,
                     .eos_id = 10,
                     .pad_id = -1};
}

tg_backend *tg_small_backend(void) {
    tg_error err;
    tg_backend *be = NULL;
    CHECK_OK(tg_backend_open(&be, "ref", 1, &err));
    return be;
}

const char *tg_small_path(const char *name) {
    static char paths[4][300];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", tg_test_tmpdir(), name);
    return path;
}

float *tg_small_weights(const tg_model *m) {
    float *x = malloc(m->params.total * sizeof *x);
    tg_backend_download(m->be, x, m->data, m->params.total * sizeof *x);
    return x;
}

bool tg_small_same(const tg_model *a, const tg_model *b) {
    if (a->params.total != b->params.total) return false;
    float *x = tg_small_weights(a), *y = tg_small_weights(b);
    bool same = !memcmp(x, y, a->params.total * sizeof *x);
    free(x);
    free(y);
    return same;
}
