/* Tensors by name, so that a checkpoint does not depend on how blocks are laid out in memory. They travel in pieces: no second copy of
 * a network is made. */
#include "learner/train/checkpoint_nets.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <string.h>

static int files_of(const tg_checkpoint_nets *nets, int net) {
    return 1 + (nets->slot[net] < 0 ? 0 : tg_optim_n_moments(nets->optim));
}

int tgi_net_files(const tg_checkpoint_nets *nets) {
    int n = 0;
    for (int net = 0; net < nets->n; net++) n += files_of(nets, net);
    return n;
}

tgi_net_file tgi_net_file_at(const tg_checkpoint_nets *nets, int i) {
    int net = 0;
    for (; i >= files_of(nets, net); net++) i -= files_of(nets, net);
    tgi_net_file f = {
        .model = nets->model[net], .optim = nets->optim, .net = nets->slot[net], .moment = i - 1};
    if (f.moment < 0)
        snprintf(f.name, sizeof f.name, "%s.safetensors", nets->name[net]);
    else
        snprintf(f.name, sizeof f.name, "%s.moment%d.safetensors", nets->name[net], f.moment);
    return f;
}

/* ---- the tensors of a file ---- */

enum { PIECE = 4 << 20 };
enum { NAME_MAX_LEN = TG_PARAM_NAME_MAX + 16 };

typedef struct entry {
    char name[NAME_MAX_LEN];
    tg_st_write header; /* name, dtype, shape */
    void *device;
    size_t bytes;
} entry;

typedef struct entries {
    entry *list;
    tg_st_write *headers; /* of the list, for the writer */
    size_t n;
    tg_backend *be;
} entries;

/* A part of a moment: the tensor itself, or ".largest", one number for each block of its codes. */
static void add(entries *all, const tg_param *p, const tg_optim_part *part, bool largest) {
    entry *e = &all->list[all->n++];
    snprintf(e->name, sizeof e->name, "%s%s", p->name, largest ? ".largest" : "");
    e->header = (tg_st_write){.dtype = part->codes ? TG_U8 : TG_F32, .ndim = largest ? 1 : p->ndim};
    for (int d = 0; d < p->ndim && !largest; d++) e->header.shape[d] = p->shape[d];
    if (largest) e->header.shape[0] = (int64_t)part->count;
    e->device = part->device;
    e->bytes = part->count * tg_dtype_bytes(e->header.dtype);
}

static void entries_fini(entries *all) {
    tg_free(all->list);
    tg_free(all->headers);
}

static tg_status entries_init(entries *all, const tgi_net_file *f, tg_error *err) {
    const tg_params *params = &f->model->params;
    *all = (entries){.be = f->model->be};
    all->list = tg_alloc_array(2 * params->n, sizeof *all->list);
    all->headers = tg_alloc_array(2 * params->n, sizeof *all->headers);
    if (!all->list || !all->headers) {
        entries_fini(all);
        return tg_fail_nomem(err, 2 * params->n * sizeof *all->list);
    }
    for (size_t i = 0; i < params->n; i++) {
        const tg_param *p = &params->list[i];
        tg_optim_part parts[2] = {{f->model->data + p->offset, p->count, false}};
        int n = f->moment < 0 ? 1 : tg_optim_parts(f->optim, f->net, f->moment, i, parts);
        for (int k = 0; k < n; k++) add(all, p, &parts[k], k > 0);
    }
    for (size_t i = 0; i < all->n; i++) {
        all->list[i].header.name = all->list[i].name;
        all->headers[i] = all->list[i].header;
    }
    return TG_OK;
}

static tg_status piece_of(void *arg, size_t index, size_t begin, void *out, size_t bytes,
                          tg_error *err) {
    (void)err;
    const entries *all = arg;
    tg_backend_download(all->be, out, (const char *)all->list[index].device + begin, bytes);
    return TG_OK;
}

static tg_status file_crc(const char *path, uint32_t *crc, tg_error *err) {
    tg_filemap map;
    tg_status st = tg_filemap_open(&map, path, err);
    if (st != TG_OK) return st;
    *crc = 0;
    for (size_t at = 0; at < map.len; at += PIECE) {
        size_t n = TG_MIN(map.len - at, (size_t)PIECE);
        *crc = tg_crc32c(*crc, map.data + at, n);
        tg_filemap_release(&map, map.data + at, n);
    }
    tg_filemap_close(&map);
    return TG_OK;
}

tg_status tgi_net_write(const char *folder, const tgi_net_file *f, uint32_t *crc, tg_error *err) {
    entries all;
    tg_status st = entries_init(&all, f, err);
    if (st != TG_OK) return st;
    char *path = tg_path_join(folder, f->name);
    st = path ? tg_safetensors_write_from(path, all.headers, all.n, NULL, piece_of, &all, err)
              : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) st = file_crc(path, crc, err);
    tg_free(path);
    entries_fini(&all);
    return st;
}

tg_status tgi_net_verify(const char *folder, const tgi_net_file *f, uint32_t crc, tg_error *err) {
    char *path = tg_path_join(folder, f->name);
    if (!path) return tg_fail_nomem(err, 0);
    uint32_t found;
    tg_status st = file_crc(path, &found, err);
    if (st == TG_OK && found != crc)
        st =
            tg_fail(err, TG_DATA, "%s is damaged (checksum %08x, expected %08x)", path, found, crc);
    tg_free(path);
    return st;
}

static tg_status read_tensor(const tg_safetensors *file, const char *path, tg_backend *be,
                             const entry *e, tg_error *err) {
    const tg_st_tensor *t = tg_safetensors_find(file, e->name);
    if (!t || t->bytes != e->bytes || t->dtype != e->header.dtype)
        return tg_fail(err, TG_DATA, "%s: tensor %s is %s", path, e->name,
                       t ? "of another size or type" : "missing");
    for (size_t at = 0; at < t->bytes; at += PIECE) {
        size_t n = TG_MIN(t->bytes - at, (size_t)PIECE);
        tg_backend_upload(be, (char *)e->device + at, t->data + at, n);
        tg_filemap_release(&file->map, t->data + at, n);
    }
    return TG_OK;
}

tg_status tgi_net_read(const char *folder, const tgi_net_file *f, tg_error *err) {
    entries all;
    tg_status st = entries_init(&all, f, err);
    if (st != TG_OK) return st;
    char *path = tg_path_join(folder, f->name);
    tg_safetensors file;
    st = path ? tg_safetensors_open(&file, path, err) : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) {
        for (size_t i = 0; st == TG_OK && i < all.n; i++)
            st = read_tensor(&file, path, all.be, &all.list[i], err);
        tg_safetensors_close(&file);
    }
    tg_model_changed(f->model);
    tg_free(path);
    entries_fini(&all);
    return st;
}
