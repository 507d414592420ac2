/* Which files of a folder hold its weights. Every file is mapped once, however many tensors the index takes from it. */
#include "common/nn/tensor_set.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/str.h"
#include "common/nn/family/config_json.h"

#include <stdio.h>
#include <string.h>

tg_status tg_tensor_set_add(tg_tensor_set *s, const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    tg_tensor_file *files = tg_realloc_array(s->files, s->n + 1, sizeof *files);
    if (files) s->files = files;
    char **paths = tg_realloc_array(s->paths, s->n + 1, sizeof *paths);
    if (paths) s->paths = paths;
    if (!path || !files || !paths) {
        tg_free(path);
        return tg_fail_nomem(err, sizeof *files);
    }
    s->paths[s->n] = path;
    tg_status st = tg_tensor_file_open(&s->files[s->n], path, err);
    s->n++; /* a failed open leaves an empty entry, which close accepts */
    return st;
}

/* name has no slash in it */
static bool has_file(const tg_tensor_set *s, const char *name) {
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(strrchr(s->paths[i], '/') + 1, name)) return true;
    return false;
}

/* NULL is none. What is longer than names of files may be is not worth asking the system. */
enum { LONGEST = 255 };

static bool is_file_name(const char *name) {
    return name && name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0 && strlen(name) <= LONGEST;
}

/* {"weight_map": {tensor: file}} */
static tg_status open_shards(tg_tensor_set *s, const char *folder, const char *name,
                             tg_error *err) {
    tg_config_json index;
    tg_status st = tg_config_json_open(&index, folder, name, err);
    if (st != TG_OK) return st;
    json_t *map = json_object_get(index.root, "weight_map"), *file;
    const char *tensor;
    if (!json_object_size(map))
        st = tg_fail(err, TG_DATA, "%s: weight_map: expected an object of names and files",
                     index.path);
    json_object_foreach(map, tensor, file) {
        const char *shard = json_string_value(file);
        if (!is_file_name(shard))
            st = tg_fail(err, TG_DATA,
                         "%s: weight_map: %.100s: expected the name of a file in the folder",
                         index.path, tensor);
        else if (!has_file(s, shard))
            st = tg_tensor_set_add(s, folder, shard, err);
        if (st != TG_OK) break;
    }
    tg_config_json_close(&index);
    return st;
}

bool tg_folder_has(const char *folder, const char *name) {
    char path[4096]; /* PATH_MAX: nothing longer can be opened */
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    return len > 0 && (size_t)len < sizeof path && tg_path_exists(path);
}

const char *const tg_weight_entries[] = {"model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "pytorch_model.bin.index.json", NULL};

/* A link among the entries whose file is not there, or NULL. */
static const char *lost_entry(const char *folder) {
    for (const char *const *name = tg_weight_entries; *name; name++) {
        char path[4096];
        int len = snprintf(path, sizeof path, "%s/%s", folder, *name);
        if (len > 0 && (size_t)len < sizeof path && tg_path_is_dangling(path)) return *name;
    }
    return NULL;
}

/* The entry that config.json names as the one to read; "": none. */
static tg_status named_entry(const char *folder, char out[LONGEST + 1], tg_error *err) {
    tg_config_json config;
    out[0] = '\0';
    if (!tg_folder_has(folder, "config.json")) return TG_OK;
    tg_status st = tg_config_json_open(&config, folder, "config.json", err);
    if (st != TG_OK) return st;
    const json_t *value = json_object_get(config.root, "transformers_weights");
    const char *name = json_string_value(value);
    if (value && !json_is_null(value) &&
        (!is_file_name(name) ||
         (!tg_str_ends(name, ".safetensors") && !tg_str_ends(name, ".safetensors.index.json"))))
        st =
            tg_fail(err, TG_DATA,
                    "%s: transformers_weights: expected the name of a file in the folder that ends "
                    "with .safetensors or .safetensors.index.json",
                    config.path);
    else if (name)
        snprintf(out, LONGEST + 1, "%s", name);
    tg_config_json_close(&config);
    return st;
}

static tg_status open_entry(tg_tensor_set *s, const char *folder, const char *name, tg_error *err) {
    tg_status st = tg_str_ends(name, ".index.json") ? open_shards(s, folder, name, err)
                                                    : tg_tensor_set_add(s, folder, name, err);
    if (st != TG_OK) tg_tensor_set_close(s);
    return st;
}

tg_status tg_tensor_set_open(tg_tensor_set *s, const char *folder, tg_error *err) {
    char named[LONGEST + 1];
    *s = (tg_tensor_set){0};
    tg_status st = named_entry(folder, named, err);
    if (st != TG_OK) return st;
    if (named[0]) return open_entry(s, folder, named, err);
    for (const char *const *name = tg_weight_entries; *name; name++)
        if (tg_folder_has(folder, *name)) return open_entry(s, folder, *name, err);
    const char *lost = lost_entry(folder);
    if (lost)
        return tg_fail(err, TG_NOINPUT,
                       "%s/%s: is a link to a file that is not there (copy a folder of links with "
                       "cp -rL)",
                       folder, lost);
    const bool adapter = tg_folder_has(folder, "adapter_model.safetensors") ||
                         tg_folder_has(folder, "adapter_model.bin");
    return tg_fail(
        err, TG_NOINPUT,
        "%s: no weights: neither model.safetensors nor pytorch_model.bin, nor an index of "
        "shards of either (model.safetensors.index.json)%s",
        folder,
        adapter ? "; what adapter_model has changes another model: merge it into that one first"
                : "");
}

void tg_tensor_set_close(tg_tensor_set *s) {
    for (size_t i = 0; i < s->n; i++) {
        tg_tensor_file_close(&s->files[i]);
        tg_free(s->paths[i]);
    }
    tg_free(s->files);
    tg_free(s->paths);
    *s = (tg_tensor_set){0};
}
