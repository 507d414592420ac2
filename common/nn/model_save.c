/* Saving a model as a Hugging Face folder. Keys of the config.json it came from that we do not know
 * are kept. */
#include "common/nn/model.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/nn/family/family.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tg_status write_json(const char *folder, const char *name, json_t *object, tg_error *err) {
    char *text = object
                     ? json_dumps(object, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15))
                     : NULL;
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

static tg_status save_config(const tg_model *m, const char *folder, tg_error *err) {
    json_t *o = object_of(m->config_text);
    tg_status st = TG_OK;
    if (!o || !tg_family_find(m->arch.family)->write(&m->arch, o)) st = tg_fail_nomem(err, 4096);
    if (st == TG_OK &&
        json_object_get(o, "dtype")) { /* newer name of torch_dtype: one of them is enough */
        json_object_del(o, "torch_dtype");
        json_object_set_new(o, "dtype", json_string("float32"));
    }
    if (st == TG_OK) st = write_json(folder, "config.json", o, err);
    json_decref(o);
    return st;
}

static tg_status save_generation(const tg_model *m, const char *folder, tg_error *err) {
    json_t *o = object_of(m->generation_text);
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {{"bos_token_id", m->arch.bos_id},
               {"eos_token_id", m->arch.eos_id},
               {"pad_token_id", m->arch.pad_id}};
    for (size_t i = 0; o && !m->generation_text && i < 3; i++)
        if (ids[i].id >= 0) json_object_set_new(o, ids[i].key, json_integer(ids[i].id));
    tg_status st = write_json(folder, "generation_config.json", o, err);
    json_decref(o);
    return st;
}

struct source {
    const tg_model *m;
    size_t first; /* parameter of the file's tensor 0 */
};

static tg_status read_device(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                             tg_error *err) {
    (void)err;
    const struct source *s = arg;
    const char *tensor = (const char *)(s->m->data + s->m->params.list[s->first + index].offset);
    tg_backend_download(s->m->be, out, tensor + begin, bytes);
    return TG_OK;
}

/* Parameters first .. end - 1 as one file. */
static tg_status save_range(const tg_model *m, const char *folder, const char *name, size_t first,
                            size_t end, tg_error *err) {
    tg_st_write *list = tg_alloc_array(end - first, sizeof *list);
    char *path = tg_path_join(folder, name);
    tg_status st = list && path ? TG_OK : tg_fail_nomem(err, (end - first) * sizeof *list);
    for (size_t i = first; i < end && st == TG_OK; i++) {
        const tg_param *p = &m->params.list[i];
        tg_st_write *t = &list[i - first];
        *t = (tg_st_write){.name = p->name, .dtype = TG_F32, .ndim = p->ndim};
        for (int d = 0; d < p->ndim; d++) t->shape[d] = p->shape[d];
    }
    struct source source = {m, first};
    if (st == TG_OK)
        st = tg_safetensors_write_from(path, list, end - first, "{\"format\":\"pt\"}", read_device,
                                       &source, err);
    tg_free(path);
    tg_free(list);
    return st;
}

static tg_status save_files(const tg_model *m, const char *folder, tg_error *err) {
    size_t n = m->params.n - (m->arch.value_head ? 1 : 0); /* the value head is the last entry */
    tg_status st = save_config(m, folder, err);
    if (st == TG_OK) st = save_generation(m, folder, err);
    if (st == TG_OK && m->arch.value_head)
        st = save_range(m, folder, "value_head.safetensors", n, n + 1, err);
    if (st == TG_OK) st = save_range(m, folder, "model.safetensors", 0, n, err);
    return st;
}

static tg_status sync_parent(const char *folder, tg_error *err) {
    const char *slash = strrchr(folder, '/');
    char *dir =
        slash ? tg_strndup(folder, slash == folder ? 1 : (size_t)(slash - folder)) : tg_strdup(".");
    tg_status st = dir ? tg_dir_sync(dir, err) : tg_fail_nomem(err, strlen(folder));
    tg_free(dir);
    return st;
}

static tg_status save_new(const tg_model *m, const char *folder, tg_error *err) {
    tg_buf tmp = {0};
    tg_buf_printf(&tmp, "%s.tmp", folder);
    if (tmp.failed) return tg_fail_nomem(err, strlen(folder) + 5);
    tg_status st = tg_dir_remove(tmp.data, err);
    if (st == TG_OK) st = tg_dir_create(tmp.data, err);
    if (st == TG_OK) st = save_files(m, tmp.data, err);
    if (st == TG_OK && rename(tmp.data, folder))
        st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", tmp.data, folder);
    if (st == TG_OK)
        st = sync_parent(folder, err);
    else if (tg_dir_remove(tmp.data, NULL) != TG_OK)
        st = err ? err->status : st;
    tg_buf_fini(&tmp);
    return st;
}

tg_status tg_model_save(const tg_model *m, const char *folder, tg_error *err) {
    if (tg_path_is_dir(folder)) return save_files(m, folder, err);
    char *bare = tg_strdup(folder);
    if (!bare) return tg_fail_nomem(err, strlen(folder));
    for (size_t len = strlen(bare); len > 1 && bare[len - 1] == '/'; len--) bare[len - 1] = '\0';
    tg_status st = save_new(m, bare, err);
    tg_free(bare);
    return st;
}
