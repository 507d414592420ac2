/* Opens backends by name and keeps the account of their memory. Sizes are kept here, on the host,
 * so that every device is accounted for in the same way. One thread at a time. */
#include "common/nn/backend.h"

#include "common/base/alloc.h"
#include "common/base/check.h"
#include "common/base/str.h"
#include "common/nn/cpu/cpu.h"
#include "common/nn/ref/ref.h"

#include <string.h>

struct tg_backend_block {
    void *p;
    size_t bytes;
};

static const struct tg_backend_ops *const backends[] = {&tg_cpu_backend, &tg_ref_backend, NULL};

const struct tg_backend_ops *const *tg_backend_list(void) {
    return backends;
}

static const struct tg_backend_ops *find(const char *name, tg_error *err) {
    const char *names[TG_COUNT_OF(backends)];
    char all[256] = "";
    size_t n = 0;
    for (; backends[n]; n++) {
        if (!strcmp(backends[n]->name, name)) return backends[n];
        names[n] = backends[n]->name;
        if (n) strncat(all, ", ", sizeof all - strlen(all) - 1);
        strncat(all, names[n], sizeof all - strlen(all) - 1);
    }
    const char *near = tg_nearest(name, names, n);
    tg_fail(err, TG_CONFIG, "unknown backend \"%s\"%s%s%s; this build has: %s", name,
            near ? ", did you mean \"" : "", near ? near : "", near ? "\"" : "", all);
    return NULL;
}

bool tg_backend_fast_bf16(const char *name) {
    const struct tg_backend_ops *b = find(name, NULL);
    return b && b->fast_bf16 && b->fast_bf16();
}

tg_status tg_backend_open(tg_backend **out, const char *name, int n_threads, tg_error *err) {
    *out = NULL;
    const struct tg_backend_ops *vtable = find(name, err);
    if (!vtable) return TG_CONFIG;
    if (n_threads < 0)
        return tg_fail(err, TG_CONFIG,
                       "threads: expected a whole number from 0 (one per CPU) on, found %d",
                       n_threads);
    tg_backend *be = tg_alloc(sizeof *be);
    if (!be) return tg_fail_nomem(err, sizeof *be);
    be->vtable = vtable;
    be->ops = vtable->ops;
    tg_status st = tg_team_create(&be->team, vtable->threaded ? n_threads : 1, err);
    if (st == TG_OK && vtable->scratch_bytes) {
        be->scratch = vtable->alloc(be, vtable->scratch_bytes);
        if (!be->scratch) st = tg_fail_nomem(err, vtable->scratch_bytes);
    }
    if (st != TG_OK) {
        tg_backend_close(&be);
        return st;
    }
    if (vtable->open) vtable->open(be);
    *out = be;
    return TG_OK;
}

void tg_backend_close(tg_backend **backend) {
    tg_backend *be = *backend;
    if (!be) return;
    for (size_t i = 0; i < be->n_blocks; i++) be->vtable->free(be, be->blocks[i].p);
    if (be->scratch) be->vtable->free(be, be->scratch);
    tg_free(be->blocks);
    tg_stock_fini(&be->stock);
    tg_team_destroy(&be->team);
    tg_free(be);
    *backend = NULL;
}

static bool reserve_block(tg_backend *be) {
    if (be->n_blocks < be->cap_blocks) return true;
    size_t cap = be->cap_blocks ? 2 * be->cap_blocks : 32;
    struct tg_backend_block *blocks = tg_realloc_array(be->blocks, cap, sizeof *blocks);
    if (!blocks) return false;
    be->blocks = blocks;
    be->cap_blocks = cap;
    return true;
}

void *tg_backend_alloc(tg_backend *be, size_t bytes, tg_error *err) {
    void *p = reserve_block(be) ? be->vtable->alloc(be, bytes) : NULL;
    if (!p) {
        tg_fail(err, TG_NOMEM,
                "backend %s cannot allocate %zu more bytes (%zu in use); use a smaller model, "
                "batch or number of slots",
                be->vtable->name, bytes, be->bytes_used);
        return NULL;
    }
    be->blocks[be->n_blocks++] = (struct tg_backend_block){p, bytes};
    be->bytes_used += bytes;
    if (be->bytes_used > be->bytes_peak) be->bytes_peak = be->bytes_used;
    return p;
}

static struct tg_backend_block *block_of(tg_backend *be, const void *p) {
    size_t i = be->n_blocks;
    while (i > 0 && be->blocks[i - 1].p != p) i--;
    TG_ASSERT(i > 0); /* not from this backend, or freed before */
    return &be->blocks[i - 1];
}

void tg_backend_free(tg_backend *be, void *p) {
    if (!p) return;
    struct tg_backend_block *b = block_of(be, p);
    be->bytes_used -= b->bytes;
    *b = be->blocks[--be->n_blocks];
    be->vtable->free(be, p);
}

void *tg_backend_host_alloc(tg_backend *be, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    if (bytes < TG_STOCK_LARGE) return tg_alloc(bytes);
    void *p = tg_stock_alloc(&be->stock, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void tg_backend_host_free(tg_backend *be, void *p) {
    if (p && tg_stock_has(&be->stock, p))
        tg_stock_free(&be->stock, p);
    else
        tg_free(p);
}

void tg_backend_rest(tg_backend *be, void *p) {
    const size_t bytes = block_of(be, p)->bytes;
    if (be->vtable->rest)
        be->vtable->rest(be, p, bytes);
    else
        be->ops->fill(be, p, 0.0f, bytes / sizeof(float));
}

tg_status tg_backend_wake(tg_backend *be, void *p, tg_error *err) {
    const size_t bytes = block_of(be, p)->bytes;
    return !be->vtable->wake || be->vtable->wake(be, p) ? TG_OK : tg_fail_nomem(err, bytes);
}

void tg_backend_release(tg_backend *be, void *p, size_t bytes) {
    if (be->vtable->release)
        be->vtable->release(be, p, bytes);
    else
        be->ops->fill(be, p, 0.0f, bytes / sizeof(float));
}

void tg_backend_upload(tg_backend *be, void *device, const void *host, size_t bytes) {
    if (bytes) be->vtable->upload(be, device, host, bytes);
}

void tg_backend_download(tg_backend *be, void *host, const void *device, size_t bytes) {
    if (bytes) be->vtable->download(be, host, device, bytes);
}

void *tg_backend_scratch(tg_backend *be, size_t bytes) {
    TG_ASSERT(bytes <= be->vtable->scratch_bytes);
    return be->scratch;
}
