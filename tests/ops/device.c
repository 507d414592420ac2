#include "tests/ops/device.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

tg_backend *ops_open_backend(const char *name, int threads) {
    tg_backend *be;
    tg_error err;
    if (tg_backend_open(&be, name, threads, &err) == TG_OK) return be;
    fprintf(stderr, "tg-ops: %s\n", err.msg);
    return NULL;
}

void ops_device_open(ops_device *d, tg_backend *be, const ops_problem *p) {
    memset(d, 0, sizeof *d);
    d->be = be;
    d->p = p;
    for (int i = 0; i < p->n; i++) {
        const ops_buf *b = &p->buf[i];
        if (!b->f && !b->i) continue;
        d->b[i] = tg_backend_alloc(be, b->n * 4, NULL);
        TG_ASSERT(d->b[i]);
        tg_backend_upload(be, d->b[i], b->f ? (const void *)b->f : (const void *)b->i, b->n * 4);
    }
}

void ops_device_run(ops_device *d, int times) {
    for (int i = 0; i < times; i++) d->p->run(d->be, d->b, d->p);
}

float *ops_device_get(ops_device *d, int i) {
    float *copy = tg_alloc_array(d->p->buf[i].n, sizeof *copy);
    TG_ASSERT(copy);
    tg_backend_download(d->be, copy, d->b[i], d->p->buf[i].n * sizeof *copy);
    return copy;
}

void ops_device_set(ops_device *d, int i, const float *values) {
    tg_backend_upload(d->be, d->b[i], values, d->p->buf[i].n * sizeof *values);
}

void ops_device_close(ops_device *d) {
    for (int i = 0; i < d->p->n; i++) tg_backend_free(d->be, d->b[i]);
}
