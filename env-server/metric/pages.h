/* Large memory that is touched all over comes in large pages where the system has them: fewer faults, fewer misses. */
#ifndef TG_ENV_METRIC_PAGES_H
#define TG_ENV_METRIC_PAGES_H

#include <stddef.h>

/* Not zeroed; NULL: out of memory. *owner is what tg_free wants. */
void *tg_pages_alloc(size_t count, size_t size, void **owner);

#endif
