/* tensor-eval FILE OUT: every tensor of a weight file of any format, with its stored type, as a safetensors file. For comparison with
 * another reader. */
#include "common/base/alloc.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <string.h>

static tg_status give(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                      tg_error *err) {
    const tg_st_tensor *t = &((const tg_tensor_file *)arg)->tensors[index];
    size_t size = tg_dtype_bytes(t->dtype);
    return tg_st_read(t, begin / size, bytes / size, t->dtype, out, err);
}

static tg_status convert(const char *from, const char *to, tg_error *err) {
    tg_tensor_file f;
    tg_status st = tg_tensor_file_open(&f, from, err);
    if (st != TG_OK) return st;
    tg_st_write *list = tg_alloc_array(f.n, sizeof *list);
    if (!list) return tg_fail_nomem(err, f.n * sizeof *list);
    for (size_t i = 0; i < f.n; i++) {
        const tg_st_tensor *t = &f.tensors[i];
        list[i] = (tg_st_write){.name = t->name, .dtype = t->dtype, .ndim = t->ndim};
        memcpy(list[i].shape, t->shape, sizeof list[i].shape);
    }
    st = tg_safetensors_write_from(to, list, f.n, NULL, give, &f, err);
    tg_free(list);
    tg_tensor_file_close(&f);
    return st;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: tensor-eval FILE OUT\n");
        return 64;
    }
    tg_error err = {0};
    tg_status st = convert(argv[1], argv[2], &err);
    if (st != TG_OK) fprintf(stderr, "tensor-eval: %s\n", err.msg);
    return tg_status_exit_code(st);
}
