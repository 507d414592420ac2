/* The three counters are the only mutable globals besides the log sink; all are atomic. */
#include "common/base/alloc.h"

#include "common/base/alloc_faults.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int_fast64_t fail_countdown = -1;
static atomic_int_fast64_t fail_period;
static atomic_uint_fast64_t call_count;

bool tg_alloc_allowed(void) {
    uint64_t n = atomic_fetch_add_explicit(&call_count, 1, memory_order_relaxed);
    int64_t period = atomic_load_explicit(&fail_period, memory_order_relaxed);
    if (period > 0 && (n * 0x9e3779b97f4a7c15u >> 33) % (uint64_t)period == 0) return false;
    if (atomic_load_explicit(&fail_countdown, memory_order_relaxed) < 0) return true;
    return atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed) != 0;
}

void tg_alloc_fail_after(int64_t n) {
    atomic_store(&fail_countdown, n);
}

void tg_alloc_fail_every(int64_t k) {
    atomic_store(&fail_period, k);
}

uint64_t tg_alloc_calls(void) {
    return atomic_load_explicit(&call_count, memory_order_relaxed);
}

void *tg_alloc(size_t bytes) {
    return tg_alloc_allowed() ? calloc(1, bytes ? bytes : 1) : NULL;
}

void *tg_alloc_array(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return tg_alloc(bytes);
}

void *tg_alloc_aligned(size_t bytes, size_t alignment) {
    void *p = NULL;
    if (!tg_alloc_allowed() || posix_memalign(&p, alignment, bytes ? bytes : alignment))
        return NULL;
    return p;
}

void *tg_realloc_array(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !tg_alloc_allowed()) return NULL;
    return realloc(old, bytes ? bytes : 1);
}

char *tg_strdup(const char *text) {
    return tg_strndup(text, strlen(text));
}

char *tg_strndup(const char *text, size_t len) {
    char *copy = tg_alloc(len + 1);
    if (copy) memcpy(copy, text, len);
    return copy;
}

void tg_free(void *p) {
    free(p);
}

void tg_alloc_give_back(void) {
#if defined(M_MMAP_THRESHOLD)
    mallopt(M_MMAP_THRESHOLD, 256 << 10); /* given, it is no longer adapted */
#endif
}
