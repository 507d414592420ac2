/* Tensors by name, so that a checkpoint does not depend on how blocks are laid out in memory. */
#include "learner/train/checkpoint_nets.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/nn/safetensors.h"

#include <stdio.h>
#include <string.h>

int tgi_net_files(const tg_checkpoint_nets *nets) {
    return nets->n * (1 + tg_optim_n_moments(nets->optim));
}

tgi_net_file tgi_net_file_at(const tg_checkpoint_nets *nets, int i) {
    int per_net = 1 + tg_optim_n_moments(nets->optim), net = i / per_net, k = i % per_net - 1;
    tgi_net_file f = {.model = nets->model[net]};
    if (k < 0) {
        f.block = f.model->data;
        snprintf(f.name, sizeof f.name, "%s.safetensors", nets->name[net]);
    } else {
        f.block = tg_optim_moment(nets->optim, net, k);
        snprintf(f.name, sizeof f.name, "%s.moment%d.safetensors", nets->name[net], k);
    }
    return f;
}

static tg_status file_crc(const char *path, uint32_t *crc, tg_error *err) {
    tg_filemap map;
    tg_status st = tg_filemap_open(&map, path, err);
    if (st != TG_OK) return st;
    *crc = tg_crc32c(0, map.data, map.len);
    tg_filemap_close(&map);
    return TG_OK;
}

tg_status tgi_net_write(const char *folder, const tgi_net_file *f, uint32_t *crc, tg_error *err) {
    const tg_params *params = &f->model->params;
    char *path = tg_path_join(folder, f->name);
    float *host = tg_alloc_array(params->total, sizeof *host);
    tg_st_write *tensors = tg_alloc_array(params->n, sizeof *tensors);
    tg_status st =
        path && host && tensors ? TG_OK : tg_fail_nomem(err, params->total * sizeof *host);
    if (st == TG_OK) {
        tg_backend_download(f->model->be, host, f->block, params->total * sizeof *host);
        for (size_t i = 0; i < params->n; i++) {
            const tg_param *p = &params->list[i];
            tensors[i] = (tg_st_write){
                .name = p->name, .dtype = TG_F32, .ndim = p->ndim, .data = host + p->offset};
            for (int d = 0; d < p->ndim; d++) tensors[i].shape[d] = p->shape[d];
        }
        st = tg_safetensors_write(path, tensors, params->n, NULL, err);
    }
    if (st == TG_OK) st = file_crc(path, crc, err);
    tg_free(tensors);
    tg_free(host);
    tg_free(path);
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

static tg_status read_tensor(const tg_safetensors *file, const char *path, const tgi_net_file *f,
                             const tg_param *p, float *host, tg_error *err) {
    const tg_st_tensor *t = tg_safetensors_find(file, p->name);
    if (!t || t->count != p->count)
        return tg_fail(err, TG_DATA, "%s: tensor %s is %s", path, p->name,
                       t ? "of another size" : "missing");
    tg_status st = tg_st_to_f32(t, host, err);
    if (st == TG_OK)
        tg_backend_upload(f->model->be, f->block + p->offset, host, p->count * sizeof *host);
    return st;
}

tg_status tgi_net_read(const char *folder, const tgi_net_file *f, tg_error *err) {
    const tg_params *params = &f->model->params;
    char *path = tg_path_join(folder, f->name);
    float *host = tg_alloc_array(params->total, sizeof *host);
    tg_safetensors file;
    tg_status st = path && host ? tg_safetensors_open(&file, path, err)
                                : tg_fail_nomem(err, params->total * sizeof *host);
    if (st == TG_OK) {
        for (size_t i = 0; st == TG_OK && i < params->n; i++)
            st = read_tensor(&file, path, f, &params->list[i], host, err);
        tg_safetensors_close(&file);
    }
    tg_free(host);
    tg_free(path);
    return st;
}
