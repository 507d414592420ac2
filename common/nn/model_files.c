/* The files of a model folder. Keys of the config.json it came from that we do not know are kept. */
#include "common/nn/model_files.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/str.h"
#include "common/nn/family/family.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Digits that give every number back: 15 where they do, as people write them, else more. */
static int digits_of(const json_t *v) {
    enum { FEW = 15, ALL = 17 };
    int digits = FEW;
    if (json_is_real(v)) {
        char text[40];
        for (; digits < ALL; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, json_real_value(v));
            if (strtod(text, NULL) == json_real_value(v)) break;
        }
        return digits;
    }
    const char *key;
    const json_t *item;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)v, key, item) digits = TG_MAX(digits, digits_of(item));
    json_array_foreach(v, i, item) digits = TG_MAX(digits, digits_of(item));
    return digits;
}

static tg_status write_json(const char *folder, const char *name, json_t *object, tg_error *err) {
    const size_t how =
        JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION((size_t)digits_of(object));
    char *text = object ? json_dumps(object, how) : NULL;
    char *path = tg_path_join(folder, name);
    tg_buf line = {0};
    if (text) tg_buf_printf(&line, "%s\n", text);
    tg_status st;
    if (!text || !path || line.failed)
        st = tg_fail_nomem(err, 4096);
    else
        st = tg_file_write_atomic(path, line.data, line.len, err);
    tg_buf_fini(&line);
    tg_free(path);
    free(text);
    return st;
}

/* An object from kept text; a fresh one when there is none. */
static json_t *object_of(const char *text) {
    json_t *o = text ? json_loads(text, 0, NULL) : NULL;
    if (json_is_object(o)) return o;
    json_decref(o);
    return json_object();
}

static const char *torch_name(tg_dtype dtype) {
    return dtype == TG_BF16 ? "bfloat16" : dtype == TG_F16 ? "float16" : "float32";
}

/* The class of a language model becomes that of one with labels. */
static bool name_judge(const tg_arch *arch, json_t *o) {
    static const char *const endings[] = {"LMHeadModel", "ForCausalLM"};
    const char *name = json_string_value(json_array_get(json_object_get(o, "architectures"), 0));
    size_t len = name ? strlen(name) : 0;
    for (size_t i = 0; i < TG_COUNT_OF(endings); i++)
        if (name && tg_str_ends(name, endings[i])) len = strlen(name) - strlen(endings[i]);
    char text[100];
    snprintf(text, sizeof text, "%.*sForSequenceClassification", (int)len, name ? name : "");
    if (!json_object_size(json_object_get(o, "id2label")) &&
        json_object_set_new(o, "num_labels", json_integer(arch->n_labels)))
        return false;
    return !json_object_set_new(o, "architectures", json_pack("[s]", text));
}

tg_status tg_model_write_config(const char *folder, const tg_arch *arch, const char *text,
                                tg_dtype dtype, tg_error *err) {
    json_t *o = object_of(text);
    tg_status st = TG_OK;
    if (!o || !tg_family_find(arch->family)->write(arch, o)) st = tg_fail_nomem(err, 4096);
    if (st == TG_OK && arch->labels && arch->kind == TG_KIND_CAUSAL && !name_judge(arch, o))
        st = tg_fail_nomem(err, 4096);
    if (st == TG_OK) { /* newer name of torch_dtype: one of them is enough */
        const char *key = json_object_get(o, "dtype") ? "dtype" : "torch_dtype";
        json_object_del(o, "torch_dtype");
        json_object_set_new(o, key, json_string(torch_name(dtype)));
        st = write_json(folder, "config.json", o, err);
    }
    json_decref(o);
    return st;
}

/* Folders from before generation_config.json have its keys in config.json, where nobody looks once there is such a file. */
static bool take_legacy(json_t *o, json_t *config) {
    static const char *const keys[] = {"bad_words_ids",
                                       "begin_suppress_tokens",
                                       "bos_token_id",
                                       "cache_implementation",
                                       "decoder_start_token_id",
                                       "diversity_penalty",
                                       "do_sample",
                                       "early_stopping",
                                       "encoder_no_repeat_ngram_size",
                                       "encoder_repetition_penalty",
                                       "eos_token_id",
                                       "epsilon_cutoff",
                                       "eta_cutoff",
                                       "exponential_decay_length_penalty",
                                       "force_words_ids",
                                       "forced_bos_token_id",
                                       "forced_eos_token_id",
                                       "guidance_scale",
                                       "length_penalty",
                                       "max_length",
                                       "max_new_tokens",
                                       "max_time",
                                       "min_length",
                                       "min_new_tokens",
                                       "min_p",
                                       "no_repeat_ngram_size",
                                       "num_beam_groups",
                                       "num_beams",
                                       "num_return_sequences",
                                       "pad_token_id",
                                       "penalty_alpha",
                                       "remove_invalid_values",
                                       "renormalize_logits",
                                       "repetition_penalty",
                                       "sequence_bias",
                                       "stop_ids",
                                       "stop_strings",
                                       "suppress_tokens",
                                       "temperature",
                                       "token_healing",
                                       "top_h",
                                       "top_k",
                                       "top_p",
                                       "typical_p",
                                       "use_cache"};
    int failed = tg_config_json_renew(config, NULL) != TG_OK;
    for (size_t i = 0; i < TG_COUNT_OF(keys); i++) {
        json_t *value = json_object_get(config, keys[i]);
        if (value && !json_is_null(value)) failed |= json_object_set(o, keys[i], value);
    }
    return !failed;
}

tg_status tg_model_write_generation(const char *folder, const tg_arch *arch, const char *text,
                                    const char *config_text, tg_error *err) {
    if (arch->kind == TG_KIND_ENCODER && !text) return TG_OK; /* nothing is generated */
    json_t *o = object_of(text), *config = object_of(config_text);
    if (!o || !config || (!text && !take_legacy(o, config))) {
        json_decref(o);
        json_decref(config);
        return tg_fail_nomem(err, 4096);
    }
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {{"bos_token_id", arch->bos_id},
               {"eos_token_id", arch->eos_id},
               {"pad_token_id", arch->pad_id},
               {"decoder_start_token_id", arch->kind == TG_KIND_SEQ2SEQ ? arch->start_id : -1}};
    for (size_t i = 0; !text && i < TG_COUNT_OF(ids); i++) /* a null says that there is none */
        if (ids[i].id >= 0 && !json_object_get(o, ids[i].key) &&
            !json_object_get(config, ids[i].key))
            json_object_set_new(o, ids[i].key, json_integer(ids[i].id));
    tg_status st = write_json(folder, "generation_config.json", o, err);
    json_decref(o);
    json_decref(config);
    return st;
}

/* ---- weights ---- */

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

static tg_status remove_file(const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_status st = TG_OK;
    if (unlink(path) && errno != ENOENT) st = tg_fail_errno(err, TG_IO, "%s: cannot remove", path);
    tg_free(path);
    return st;
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
    if (st == TG_OK) st = write_json(w->folder, "model.safetensors.index.json", index, err);
    if (st == TG_OK) st = remove_file(w->folder, "model.safetensors", err);
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
    if (st == TG_OK) st = remove_file(folder, "model.safetensors.index.json", err);
    return st;
}

/* ---- the folder ---- */

static tg_status sync_parent(const char *folder, tg_error *err) {
    const char *slash = strrchr(folder, '/');
    char *dir =
        slash ? tg_strndup(folder, slash == folder ? 1 : (size_t)(slash - folder)) : tg_strdup(".");
    tg_status st = dir ? tg_dir_sync(dir, err) : tg_fail_nomem(err, strlen(folder));
    tg_free(dir);
    return st;
}

static tg_status write_new(const char *folder,
                           tg_status (*write)(void *arg, const char *folder, tg_error *err),
                           void *arg, tg_error *err) {
    char *fresh = NULL;
    tg_status st = tg_dir_create_beside(folder, &fresh, err);
    if (st != TG_OK) return st;
    st = write(arg, fresh, err);
    if (st == TG_OK && rename(fresh, folder))
        st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", fresh, folder);
    if (st == TG_OK)
        st = sync_parent(folder, err);
    else if (tg_dir_remove(fresh, NULL) != TG_OK)
        st = err ? err->status : st;
    tg_free(fresh);
    return st;
}

/* The files that make a folder a model: where neither is, it is refused, whatever else is there. */
static bool is_entry(const char *name) {
    return !strcmp(name, "model.safetensors") || !strcmp(name, "model.safetensors.index.json");
}

/* Moves the entries, or all the other files. */
static tg_status move_files(const char *from, const char *to, bool entries, tg_error *err) {
    DIR *dir = opendir(from);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", from);
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || is_entry(e->d_name) != entries) continue;
        char *source = tg_path_join(from, e->d_name), *target = tg_path_join(to, e->d_name);
        if (!source || !target)
            st = tg_fail_nomem(err, strlen(from));
        else if (rename(source, target))
            st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", source, target);
        tg_free(source);
        tg_free(target);
    }
    closedir(dir);
    return st == TG_OK ? tg_dir_sync(to, err) : st;
}

/* model-00001-of-00002.safetensors, as write_shards calls them. */
static bool is_shard(const char *name) {
    unsigned k, n;
    char again[64];
    if (sscanf(name, "model-%5u-of-%5u.safetensors", &k, &n) != 2) return false;
    snprintf(again, sizeof again, "model-%05u-of-%05u.safetensors", k, n);
    return !strcmp(again, name);
}

/* Without an entry nothing names them any more. */
static tg_status remove_shards(const char *folder, tg_error *err) {
    DIR *dir = opendir(folder);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", folder);
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));)
        if (is_shard(e->d_name)) st = remove_file(folder, e->d_name, err);
    closedir(dir);
    return st;
}

/* The old entries go first and the new one comes last: in between the folder is no model, but never one of two halves. */
static tg_status move_in(const char *from, const char *to, tg_error *err) {
    tg_status st = remove_file(to, "model.safetensors.index.json", err);
    if (st == TG_OK) st = remove_file(to, "model.safetensors", err);
    if (st == TG_OK) st = remove_file(to, "value_head.safetensors", err);
    if (st == TG_OK) st = tg_dir_sync(to, err);
    if (st == TG_OK) st = remove_shards(to, err);
    if (st == TG_OK) st = move_files(from, to, false, err);
    if (st == TG_OK) st = move_files(from, to, true, err);
    return st == TG_OK ? tg_dir_remove(from, err) : st;
}

/* Into a folder inside it first: what is there stays as it is until all of the new model is on disk. */
static tg_status write_over(const char *folder,
                            tg_status (*write)(void *arg, const char *folder, tg_error *err),
                            void *arg, tg_error *err) {
    char *stem = tg_path_join(folder, "incoming"), *fresh = NULL;
    tg_status st =
        stem ? tg_dir_create_beside(stem, &fresh, err) : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) {
        st = write(arg, fresh, err);
        if (st == TG_OK)
            st = move_in(fresh, folder, err);
        else if (tg_dir_remove(fresh, NULL) != TG_OK)
            st = err ? err->status : st;
    }
    tg_free(stem);
    tg_free(fresh);
    return st;
}

tg_status tg_model_write_folder(const char *folder,
                                tg_status (*write)(void *arg, const char *folder, tg_error *err),
                                void *arg, tg_error *err) {
    if (tg_path_is_dir(folder)) return write_over(folder, write, arg, err);
    char *bare = tg_strdup(folder);
    if (!bare) return tg_fail_nomem(err, strlen(folder));
    for (size_t len = strlen(bare); len > 1 && bare[len - 1] == '/'; len--) bare[len - 1] = '\0';
    tg_status st = write_new(bare, write, arg, err);
    tg_free(bare);
    return st;
}
