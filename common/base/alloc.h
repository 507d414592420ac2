/* Heap memory through one door: sizes are overflow-checked, tests can make the k-th call fail and count calls.
 *
 * Every function may return NULL; the caller reports tg_fail_nomem(). tg_free(NULL) is allowed. */
#ifndef TG_BASE_ALLOC_H
#define TG_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *tg_alloc(size_t bytes);                           /* zeroed; bytes 0 gives a unique pointer */
void *tg_alloc_array(size_t count, size_t size);        /* zeroed, NULL when count*size overflows */
void *tg_alloc_aligned(size_t bytes, size_t alignment); /* not zeroed; freed with tg_free */
void *tg_realloc_array(void *old, size_t count, size_t size); /* new bytes are not zeroed */
char *tg_strdup(const char *text);
char *tg_strndup(const char *text, size_t len);
void tg_free(void *p);

/* From now on what is freed of 256 kB and more is the system's again at once, whatever lies above it on the heap; an allocator that learns from what
 * is freed would keep megabytes from one phase of a run to the next, some runs more than others. For the main of programs that plan their memory. */
void tg_alloc_give_back(void);

/* For memory that is not the heap's: counts a call; false when it is to fail. */
bool tg_alloc_allowed(void);

/* Test hooks. fail_after(n): the n+1-th allocation from now fails, once; negative: never (the default). */
void tg_alloc_fail_after(int64_t n);
uint64_t tg_alloc_calls(void);

#endif
