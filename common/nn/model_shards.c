/* Weights as one file, or as shards with an index. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/nn/json_file.h"
#include "common/nn/model_files.h"

#include <stdio.h>

struct writing {
    const char *folder;
    const tg_params *params;
    tg_save_opts opts;
    tg_param_source *source;
    void *arg;
    size_t first; /* parameter of the present file's tensor 0 */
};

static tg_status give(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                      tg_error *err) {
    const struct writing *w = arg;
    size_t size = tg_dtype_bytes(w->opts.dtype);
    return w->source(w->arg, w->first + index, begin / size, bytes / size, w->opts.dtype, out, err);
}

/* Parameters first .. end - 1 as one file. */
static tg_status write_range(struct writing *w, const char *name, size_t first, size_t end,
                             tg_error *err) {
    tg_st_write *list = tg_alloc_array(end - first, sizeof *list);
    char *path = tg_path_join(w->folder, name);
    tg_status st = list && path ? TG_OK : tg_fail_nomem(err, (end - first) * sizeof *list);
    for (size_t i = first; i < end && st == TG_OK; i++) {
        const tg_param *p = &w->params->list[i];
        tg_st_write *t = &list[i - first];
        *t = (tg_st_write){.name = p->name, .dtype = w->opts.dtype, .ndim = p->ndim};
        for (int d = 0; d < p->ndim; d++) t->shape[d] = p->shape[d];
    }
    w->first = first;
    if (st == TG_OK)
        st =
            tg_safetensors_write_from(path, list, end - first, "{\"format\":\"pt\"}", give, w, err);
    tg_free(path);
    tg_free(list);
    return st;
}

/* The value head is the last entry, if there is one. */
static size_t without_value_head(const tg_params *p) {
    return p->n && p->list[p->n - 1].role == TG_ROLE_VALUE_W ? p->n - 1 : p->n;
}

/* End of the shard that begins at `first`: as many tensors as fit, at least one. */
static size_t shard_end(const tg_params *params, tg_save_opts opts, size_t first, size_t n) {
    size_t limit = opts.shard_bytes ? opts.shard_bytes : TG_SHARD_BYTES, bytes = 0, end = first;
    for (; end < n; end++) {
        bytes += params->list[end].count * tg_dtype_bytes(opts.dtype);
        if (end > first && bytes > limit) break;
    }
    return end;
}

size_t tg_model_count_shards(const tg_params *params, tg_save_opts opts) {
    size_t shards = 0, n = without_value_head(params);
    for (size_t i = 0; i < n; i = shard_end(params, opts, i, n)) shards++;
    return shards;
}

static tg_status write_shards(struct writing *w, size_t n, size_t shards, tg_error *err) {
    json_t *map = json_object();
    size_t total = 0, k = 0;
    tg_status st = map ? TG_OK : tg_fail_nomem(err, 4096);
    for (size_t i = 0, end; i < n && st == TG_OK; i = end) {
        end = shard_end(w->params, w->opts, i, n);
        char name[64];
        snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", ++k, shards);
        st = write_range(w, name, i, end, err);
        for (size_t t = i; t < end && st == TG_OK; t++) {
            total += w->params->list[t].count * tg_dtype_bytes(w->opts.dtype);
            if (json_object_set_new(map, w->params->list[t].name, json_string(name)))
                st = tg_fail_nomem(err, 4096);
        }
    }
    json_t *index =
        json_pack("{s:{s:I},s:O}", "metadata", "total_size", (json_int_t)total, "weight_map", map);
    if (st == TG_OK) st = tg_json_file_write(w->folder, "model.safetensors.index.json", index, err);
    json_decref(index);
    json_decref(map);
    return st;
}

tg_status tg_model_write_weights(const char *folder, const tg_params *params, tg_save_opts opts,
                                 tg_param_source *source, void *arg, tg_error *err) {
    struct writing w = {folder, params, opts, source, arg, 0};
    size_t n = without_value_head(params), shards = tg_model_count_shards(params, opts);
    tg_status st = TG_OK;
    if (n < params->n) {
        struct writing value = w;
        value.opts.dtype = TG_F32; /* a row: nothing to gain */
        st = write_range(&value, "value_head.safetensors", n, params->n, err);
    }
    if (st == TG_OK && shards > 1) return write_shards(&w, n, shards, err);
    if (st == TG_OK) st = write_range(&w, "model.safetensors", 0, n, err);
    return st;
}
