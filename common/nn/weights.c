/* Finding the files of a folder and matching their tensors. Data stays in the maps; f32 goes from
 * there straight to the device, other types through a small conversion buffer. */
#include "common/nn/weights.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 20 }; /* elements copied at a time */

static tg_status add_file(tg_weights *w, const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    tg_safetensors *files = tg_realloc_array(w->files, w->n_files + 1, sizeof *files);
    if (files) w->files = files;
    char **paths = tg_realloc_array(w->paths, w->n_files + 1, sizeof *paths);
    if (paths) w->paths = paths;
    if (!path || !files || !paths) {
        tg_free(path);
        return tg_fail_nomem(err, sizeof *files);
    }
    w->paths[w->n_files] = path;
    tg_status st = tg_safetensors_open(&w->files[w->n_files], path, err);
    w->n_files++; /* a failed open leaves an empty entry, which close accepts */
    return st;
}

/* name has no slash in it */
static bool has_file(const tg_weights *w, const char *name) {
    for (size_t i = 0; i < w->n_files; i++)
        if (!strcmp(strrchr(w->paths[i], '/') + 1, name)) return true;
    return false;
}

/* {"weight_map": {tensor: file}}: opens each file once. */
static tg_status open_shards(tg_weights *w, const char *folder, tg_error *err) {
    tg_config_json index;
    tg_status st = tg_config_json_open(&index, folder, "model.safetensors.index.json", err);
    if (st != TG_OK) return st;
    json_t *map = json_object_get(index.root, "weight_map"), *file;
    const char *tensor;
    if (!json_is_object(map))
        st = tg_fail(err, TG_DATA, "%s: weight_map: expected an object", index.path);
    json_object_foreach(map, tensor, file) {
        const char *name = json_string_value(file);
        if (!name || !name[0] || strchr(name, '/'))
            st = tg_fail(err, TG_DATA,
                         "%s: weight_map: %.100s: expected the name of a file in the folder",
                         index.path, tensor);
        else if (!has_file(w, name))
            st = add_file(w, folder, name, err);
        if (st != TG_OK) break;
    }
    tg_config_json_close(&index);
    return st;
}

static bool folder_has(const char *folder, const char *name) {
    char path[4096]; /* PATH_MAX: nothing longer can be opened */
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    return len > 0 && (size_t)len < sizeof path && tg_path_exists(path);
}

static tg_status open_files(tg_weights *w, const char *folder, tg_error *err) {
    if (folder_has(folder, "model.safetensors"))
        return add_file(w, folder, "model.safetensors", err);
    if (folder_has(folder, "model.safetensors.index.json")) return open_shards(w, folder, err);
    if (folder_has(folder, "pytorch_model.bin") ||
        folder_has(folder, "pytorch_model.bin.index.json"))
        return tg_fail(
            err, TG_UNSUPPORTED,
            "%s: pytorch_model.bin is not read by this version; save it with transformers' "
            "save_pretrained (model.safetensors)",
            folder);
    return tg_fail(err, TG_NOINPUT,
                   "%s: no weights: neither model.safetensors nor model.safetensors.index.json",
                   folder);
}

static void shape_text(char *out, size_t size, int ndim, const int64_t *shape) {
    size_t at = (size_t)snprintf(out, size, "(");
    for (int i = 0; i < ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (at < size) snprintf(out + at, size - at, ")");
}

static tg_status check_tensor(const tg_st_tensor *t, const tg_param *p, const char *path,
                              tg_error *err) {
    bool same = t->ndim == p->ndim;
    int64_t wanted[4];
    for (int i = 0; i < p->ndim; i++) {
        wanted[i] = p->shape[i];
        same = same && t->shape[i] == wanted[i];
    }
    char expected[120], found[240];
    shape_text(expected, sizeof expected, p->ndim, wanted);
    shape_text(found, sizeof found, t->ndim, t->shape);
    if (!same)
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\": expected shape %s, found %s", path,
                       t->name, expected, found);
    if (t->dtype != TG_F32 && t->dtype != TG_F16 && t->dtype != TG_BF16 && t->dtype != TG_F64)
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\": expected F32, F16, BF16 or F64, found %s",
                       path, t->name, tg_dtype_name(t->dtype));
    return TG_OK;
}

/* A tied matrix may be stored under both of its names, with the same contents. */
static tg_status check_twin(const tg_st_tensor *a, const tg_st_tensor *b, const tg_family *family,
                            const char *path, tg_error *err) {
    if (!tg_family_is_head(family, a->name) && !tg_family_is_head(family, b->name))
        return tg_fail(err, TG_DATA, "%s: tensors \"%s\" and \"%s\" are the same parameter", path,
                       a->name, b->name);
    if (a->dtype == b->dtype && a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes))
        return TG_OK;
    return tg_fail(err, TG_DATA,
                   "%s: tensors \"%s\" and \"%s\" differ, but config.json ties them (untie with "
                   "\"tie_word_embeddings\": false)",
                   path, a->name, b->name);
}

static tg_status match_file(tg_weights *w, size_t file, const tg_family *family,
                            const tg_arch *arch, const tg_params *params, tg_error *err) {
    const char *path = w->paths[file];
    for (size_t i = 0; i < w->files[file].n; i++) {
        const tg_st_tensor *t = &w->files[file].tensors[i];
        int hit = tg_family_match(family, arch, params, t->name);
        if (hit == TG_MATCH_IGNORED) continue;
        if (hit < 0)
            return tg_fail(
                err, TG_DATA,
                "%s: tensor \"%.200s\" is not part of a %s model with the sizes in config.json",
                path, t->name, family->name);
        tg_status st = check_tensor(t, &params->list[hit], path, err);
        if (st == TG_OK && w->found[hit]) st = check_twin(w->found[hit], t, family, path, err);
        if (st != TG_OK) return st;
        w->found[hit] = t;
        w->found_in[hit] = file;
    }
    return TG_OK;
}

static tg_status check_complete(const tg_weights *w, const tg_params *params, tg_error *err) {
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        if (w->found[i] || p->role == TG_ROLE_VALUE_W) continue;
        int64_t wanted[4];
        for (int d = 0; d < p->ndim; d++) wanted[d] = p->shape[d];
        char expected[120];
        shape_text(expected, sizeof expected, p->ndim, wanted);
        return tg_fail(err, TG_DATA, "%s: tensor \"%s\" is missing (expected shape %s)",
                       w->n_files ? w->paths[0] : "weights", p->name, expected);
    }
    return TG_OK;
}

tg_status tg_weights_open(tg_weights *w, const char *folder, const tg_arch *arch,
                          const tg_params *params, tg_error *err) {
    *w = (tg_weights){0};
    const tg_family *family = tg_family_find(arch->family);
    w->found = tg_alloc_array(params->n, sizeof *w->found);
    w->found_in = tg_alloc_array(params->n, sizeof *w->found_in);
    tg_status st =
        w->found && w->found_in ? TG_OK : tg_fail_nomem(err, params->n * sizeof *w->found);
    if (st == TG_OK) st = open_files(w, folder, err);
    if (st == TG_OK && arch->value_head && folder_has(folder, "value_head.safetensors"))
        st = add_file(w, folder, "value_head.safetensors", err);
    for (size_t i = 0; i < w->n_files && st == TG_OK; i++)
        st = match_file(w, i, family, arch, params, err);
    if (st == TG_OK) st = check_complete(w, params, err);
    if (st != TG_OK) tg_weights_close(w);
    return st;
}

void tg_weights_close(tg_weights *w) {
    for (size_t i = 0; i < w->n_files; i++) {
        tg_safetensors_close(&w->files[i]);
        tg_free(w->paths[i]);
    }
    tg_free(w->files);
    tg_free(w->paths);
    tg_free(w->found);
    tg_free(w->found_in);
    *w = (tg_weights){0};
}

/* Piece by piece, giving back what was copied: the file's pages and the model are never both whole in memory. */
tg_status tg_weights_upload(const tg_weights *w, size_t i, tg_backend *be, float *device,
                            tg_error *err) {
    const tg_st_tensor *t = w->found[i];
    const tg_filemap *map = &w->files[w->found_in[i]].map;
    size_t size = tg_dtype_bytes(t->dtype);
    float *piece = NULL;
    if (t->dtype != TG_F32 && !(piece = tg_alloc_array(PIECE, sizeof *piece)))
        return tg_fail_nomem(err, PIECE * sizeof *piece);
    tg_status st = TG_OK;
    for (size_t at = 0; at < t->count && st == TG_OK; at += PIECE) {
        size_t n = TG_MIN(t->count - at, (size_t)PIECE);
        const unsigned char *from = t->data + at * size;
        if (piece) st = tg_st_to_f32_part(t, at, n, piece, err);
        if (st == TG_OK)
            tg_backend_upload(be, device + at, piece ? (void *)piece : from, n * sizeof(float));
        tg_filemap_release(map, from, n * size);
    }
    tg_free(piece);
    return st;
}
