/* Memory in large pages: whole ones, so that none of it is left to small pages. */
#include "env-server/metric/pages.h"

#include "common/base/alloc.h"

#include <stdint.h>
#include <sys/mman.h>

enum { LARGE = 2 << 20 };

void *tg_pages_alloc(size_t count, size_t size, void **owner) {
    *owner = NULL;
    if (size && count > (SIZE_MAX - 2 * LARGE) / size) return NULL;
    size_t bytes = count * size;
    if (bytes < LARGE / 2) return *owner = tg_realloc_array(NULL, bytes + 1, 1);
    bytes += (LARGE - bytes % LARGE) % LARGE;
    char *p = tg_realloc_array(NULL, bytes + LARGE, 1);
    if (!p) return NULL;
    *owner = p;
    p += (LARGE - (uintptr_t)p % LARGE) % LARGE;
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* without them it only takes longer */
    return p;
}
