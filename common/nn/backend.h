/* A backend: one device, its memory and its table of ops. Nothing above the ops touches device
 * memory.
 *
 *     tg_backend *be;
 *     tg_backend_open(&be, "cpu", 2, err);                   // "ref": naive loops, for tests
 *     float *x = tg_backend_alloc(be, n * sizeof(float), err);
 *     be->ops->add(be, y, x, n);
 *     tg_backend_close(&be);
 *
 * Pointers passed to ops are device pointers (on ref and cpu: ordinary memory, 64-byte aligned). A
 * backend is used from one thread at a time; it has its own team of threads. Ops do not fail: their
 * arguments are validated above. */
#ifndef TG_NN_BACKEND_H
#define TG_NN_BACKEND_H

#include "common/base/stock.h"
#include "common/base/status.h"
#include "common/base/threads.h"
#include "common/nn/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Passes that come to touch a backend's workspace. */
typedef struct tg_scratch_sizes {
    int rows, actions;
    int others, half_others; /* rows of what else is multiplied: by floats, and by bf16 */
    int width, V;            /* of the widest rows; of the vocabulary */
    bool kept;               /* all logits are */
    bool rounded;            /* the passes' products are */
} tg_scratch_sizes;

struct tg_backend_ops {
    const char *name;
    const char *summary;
    const tg_ops *ops;
    size_t scratch_bytes; /* workspace reserved at open, so that no op can run out of memory */
    size_t (*scratch_used)(const tg_scratch_sizes *sizes); /* for the memory plan. NULL: nothing */
    bool threaded; /* false: the ops use one thread whatever was asked for */
    /* ops may write to the host's memory: what is to be downloaded need not be copied */
    bool host_memory;
    /* Whether rounded products (op/matmul.h) are faster on this machine than others; NULL: they are not. */
    bool (*fast_bf16)(void);
    void (*open)(tg_backend *be); /* once, when there are team and workspace; may be NULL */
    void *(*alloc)(tg_backend *be, size_t bytes); /* not zeroed; NULL: out of memory */
    void (*free)(tg_backend *be, void *p);
    void (*release)(tg_backend *be, void *p, size_t bytes); /* NULL: filling with zeros will do */
    void (*rest)(tg_backend *be, void *p, size_t bytes);    /* NULL: the same; a whole block */
    bool (*wake)(tg_backend *be, void *p); /* NULL: nothing to do; false: out of memory */
    void (*upload)(tg_backend *be, void *device, const void *host, size_t bytes);
    void (*download)(tg_backend *be, void *host, const void *device,
                     size_t bytes); /* waits for pending ops */
};

struct tg_backend {
    const tg_ops *ops; /* read-only */
    const struct tg_backend_ops *vtable;
    tg_team *team;
    size_t bytes_used, bytes_peak;        /* of tg_backend_alloc */
    const struct tg_cpu_kernels *kernels; /* private from here on; cpu: chosen for this machine */
    void *scratch;
    struct tg_backend_block *blocks; /* what alloc handed out, with sizes */
    size_t n_blocks, cap_blocks;
    tg_stock stock; /* of the host: what is large there is made of them */
};

/* n_threads 0: one per CPU the process may use. TG_CONFIG: no such backend (names the ones there
 * are). */
tg_status tg_backend_open(tg_backend **out, const char *name, int n_threads,
                          tg_error *err) TG_MUST_CHECK;
void tg_backend_close(tg_backend **be); /* also frees what was allocated and not freed */

void *tg_backend_alloc(tg_backend *be, size_t bytes, tg_error *err); /* NULL with err set */
void tg_backend_free(tg_backend *be, void *p);                       /* NULL is allowed */
/* Host memory, zeroed, for what is large and comes and goes with a phase: on a cpu its pages and those of blocks serve each other. NULL:
 * out of memory. */
void *tg_backend_host_alloc(tg_backend *be, size_t count, size_t size);
void tg_backend_host_free(tg_backend *be, void *p); /* NULL is allowed */
/* A block (whole floats) that is not needed for a while: it reads as zeros, and other blocks may have its memory. Before it is written
 * to again it must be woken, which leaves undefined what is in it; TG_NOMEM: it can only be freed then. */
void tg_backend_rest(tg_backend *be, void *p);
tg_status tg_backend_wake(tg_backend *be, void *p, tg_error *err) TG_MUST_CHECK;
/* A part of a block (whole floats) that will not be needed: it becomes zeros, and its memory is the system's again. */
void tg_backend_release(tg_backend *be, void *p, size_t bytes);
void tg_backend_upload(tg_backend *be, void *device, const void *host, size_t bytes);
void tg_backend_download(tg_backend *be, void *host, const void *device, size_t bytes);
/* For ops alone: the backend's workspace, at most vtable->scratch_bytes, contents undefined. The
 * next op overwrites it. */
void *tg_backend_scratch(tg_backend *be, size_t bytes);

/* Of the backend of that name. */
bool tg_backend_fast_bf16(const char *name);

/* All backends in this build, NULL-terminated. */
const struct tg_backend_ops *const *tg_backend_list(void);

#endif
