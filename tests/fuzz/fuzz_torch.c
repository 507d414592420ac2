/* What torch.save writes, and bare pickles: opened or refused, never a crash; every tensor that opens lies inside the file. */
#include "common/base/check.h"
#include "common/nn/torch/pickle.h"
#include "common/nn/torch/state.h"
#include "common/nn/torch/torch_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tensor(const tg_st_tensor *t, const uint8_t *data, size_t size) {
    size_t one = tg_dtype_bytes(t->dtype);
    TG_ASSERT(t->count * one == t->bytes);
    if (!t->count) return;
    int64_t last = 0;
    for (int d = 0; d < t->ndim && t->strided; d++) last += (t->shape[d] - 1) * t->stride[d];
    if (!t->strided) last = (int64_t)t->count - 1;
    TG_ASSERT(t->data >= data && t->data + ((size_t)last + 1) * one <= data + size);
    float x[16];
    size_t n = TG_MIN(t->count, TG_COUNT_OF(x));
    TG_ASSERT((tg_st_to_f32_part(t, t->count - n, n, x, NULL) == TG_OK) ==
              tg_dtype_is_float(t->dtype));
}

static void run_bare(const uint8_t *data, size_t size) {
    tg_torch_state state = {0};
    tg_pickle p;
    tg_pickle_value out;
    tg_error err = {0};
    size_t used;
    tg_pickle_init(&p, tg_torch_state_host(&state));
    tg_status st = tg_pickle_run(&p, data, size, &used, &out, &err);
    TG_ASSERT(st == TG_OK || (st == TG_DATA && err.msg[0]));
    tg_pickle_fini(&p);
    tg_torch_state_fini(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!tg_torch_file_is(data, size)) {
        run_bare(data, size);
        return 0;
    }
    tg_tensor_file f;
    tg_error err;
    tg_status st = tg_torch_file_open_memory(&f, "fuzz", data, size, &err);
    if (st != TG_OK) {
        TG_ASSERT((st == TG_DATA || st == TG_UNSUPPORTED) && err.msg[0] && !f.tensors);
        return 0;
    }
    for (size_t i = 0; i < f.n; i++) {
        check_tensor(&f.tensors[i], data, size);
        st = tg_tensor_file_check_seal(&f, &f.tensors[i], "fuzz", &err);
        TG_ASSERT(st == TG_OK || (st == TG_DATA && err.msg[0]));
    }
    tg_tensor_file_close(&f);
    return 0;
}
