/* Opening and checking. After open every tensor's data lies inside the map, the tensors
 * cover the data exactly once and have distinct names; nothing later checks again. */
#include "common/nn/safetensors.h"

#include "common/base/alloc.h"
#include "common/nn/st_header.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 100 * 1000 * 1000 }; /* the format's own limit */

static int by_data(const void *a, const void *b) {
    const tg_st_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static tg_status check_cover(tg_safetensors *st, const char *file, const unsigned char *blob,
                             size_t blob_len, tg_error *err) {
    if (st->n) qsort(st->tensors, st->n, sizeof *st->tensors, by_data);
    const unsigned char *next = blob;
    for (size_t i = 0; i < st->n; i++) {
        const tg_st_tensor *t = &st->tensors[i];
        if (t->data != next)
            return tg_fail(err, TG_DATA, "%s: bad safetensors file: tensor \"%.200s\": its data %s",
                           file, t->name,
                           t->data < next ? "overlaps that of another tensor"
                                          : "leaves a gap before it");
        next = t->data + t->bytes;
    }
    size_t covered = (size_t)(next - blob);
    if (covered != blob_len)
        return tg_fail(err, TG_DATA,
                       "%s: bad safetensors file: %zu bytes of data, of which tensors cover %zu",
                       file, blob_len, covered);
    return TG_OK;
}

tg_status tg_safetensors_open_memory(tg_safetensors *st, const char *name, const void *bytes,
                                     size_t len, tg_error *err) {
    *st = (tg_safetensors){0};
    const unsigned char *p = bytes;
    if (len < 8)
        return tg_fail(err, TG_DATA, "%s: bad safetensors file: %zu bytes are too few", name, len);
    uint64_t header = 0;
    for (int i = 7; i >= 0; i--) header = header << 8 | p[i];
    if (header > MAX_HEADER || header > len - 8)
        return tg_fail(err, TG_DATA,
                       "%s: bad safetensors file: a header of %llu bytes in a file of %zu (not "
                       "safetensors, or cut off)",
                       name, (unsigned long long)header, len);
    const unsigned char *blob = p + 8 + header;
    size_t blob_len = len - 8 - (size_t)header;
    tg_status status =
        tg_st_header_parse(st, name, (const char *)p + 8, (size_t)header, blob, blob_len, err);
    if (status == TG_OK) status = check_cover(st, name, blob, blob_len, err);
    if (status == TG_OK) status = tg_tensor_file_check_names(st, name, "safetensors", err);
    if (status != TG_OK) tg_safetensors_close(st);
    return status;
}

tg_status tg_safetensors_open(tg_safetensors *st, const char *path, tg_error *err) {
    *st = (tg_safetensors){0};
    tg_filemap map;
    tg_status status = tg_filemap_open(&map, path, err);
    if (status != TG_OK) return status;
    status = tg_safetensors_open_memory(st, path, map.data, map.len, err);
    if (status == TG_OK)
        st->map = map;
    else
        tg_filemap_close(&map);
    return status;
}

void tg_safetensors_close(tg_safetensors *st) {
    tg_tensor_file_close(st);
}

const tg_st_tensor *tg_safetensors_find(const tg_safetensors *st, const char *name) {
    return tg_tensor_file_find(st, name);
}
