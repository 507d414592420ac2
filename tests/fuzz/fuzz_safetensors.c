/* Weight files: opened or refused, never a crash; what opens covers its data exactly and converts. */
#include "common/base/check.h"
#include "common/nn/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensor(const tg_st_tensor *t, const uint8_t *data, size_t size) {
    TG_ASSERT(t->data >= data && t->data + t->bytes <= data + size);
    TG_ASSERT(t->count * tg_dtype_bytes(t->dtype) == t->bytes);
    float *x = malloc(t->count * sizeof *x + 1);
    TG_ASSERT(x);
    tg_status st = tg_st_to_f32(t, x, NULL);
    TG_ASSERT((st == TG_OK) == (t->dtype <= TG_F64));
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tg_safetensors st;
    tg_error err;
    tg_status status = tg_safetensors_open_memory(&st, "fuzz", data, size, &err);
    if (status != TG_OK) {
        TG_ASSERT(status == TG_DATA && err.msg[0] && !st.tensors);
        return 0;
    }
    size_t covered = 0;
    for (size_t i = 0; i < st.n; i++) {
        check_tensor(&st.tensors[i], data, size);
        covered += st.tensors[i].bytes;
        TG_ASSERT(tg_safetensors_find(&st, st.tensors[i].name) == &st.tensors[i]);
    }
    TG_ASSERT(covered < size);
    tg_safetensors_close(&st);
    return 0;
}
