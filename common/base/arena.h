/* Memory that is freed all at once: a chain of blocks, handed out by bumping a pointer.
 *
 *     tg_arena a = {0};
 *     char *s = tg_arena_alloc(&a, 100);     // zeroed, 16-byte aligned, valid until reset or fini
 *     tg_arena_reset(&a);                    // keeps the blocks: steady state allocates nothing
 *     tg_arena_fini(&a);
 *
 * Not thread safe: one arena, one thread at a time. */
#ifndef TG_BASE_ARENA_H
#define TG_BASE_ARENA_H

#include <stddef.h>

typedef struct tg_arena_block tg_arena_block;

typedef struct tg_arena {
    tg_arena_block *first; /* private */
    tg_arena_block *current;
    size_t block; /* bytes of a block, where there are many small arenas; 0: 16 KiB */
} tg_arena;

void *tg_arena_alloc(tg_arena *a, size_t bytes); /* NULL when out of memory */
void *tg_arena_array(tg_arena *a, size_t count, size_t size);
char *tg_arena_strdup(tg_arena *a, const char *text);
char *tg_arena_strndup(tg_arena *a, const char *text, size_t len);
void tg_arena_reset(tg_arena *a);
void tg_arena_fini(tg_arena *a);

#endif
