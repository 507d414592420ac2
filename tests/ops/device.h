/* A problem's buffers on a backend. */
#ifndef TG_TESTS_OPS_DEVICE_H
#define TG_TESTS_OPS_DEVICE_H

#include "tests/ops/ops.h"

typedef struct ops_device {
    tg_backend *be;
    const ops_problem *p;
    void *b[OPS_BUFS];
} ops_device;

void ops_device_open(ops_device *d, tg_backend *be, const ops_problem *p);
void ops_device_run(ops_device *d, int times);
/* Host copy of buffer i; the caller frees it (tg_free). */
float *ops_device_get(ops_device *d, int i);
void ops_device_set(ops_device *d, int i, const float *values);
void ops_device_close(ops_device *d);
tg_backend *ops_open_backend(const char *name, int threads);

#endif
