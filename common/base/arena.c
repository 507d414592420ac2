#include "common/base/arena.h"

#include "common/base/alloc.h"

#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 16 * 1024 };

struct tg_arena_block {
    tg_arena_block *next;
    size_t used, size; /* of the bytes behind this header */
    size_t pad;        /* keeps the payload 16-byte aligned */
};

static unsigned char *payload(tg_arena_block *b) {
    return (unsigned char *)(b + 1);
}

static tg_arena_block *block_create(size_t usual, size_t at_least) {
    size_t size = at_least > usual ? at_least : usual;
    tg_arena_block *b = tg_alloc(sizeof *b + size);
    if (b) b->size = size;
    return b;
}

/* The next block with room, reusing blocks kept by a reset; a new one is linked in after the current. */
static tg_arena_block *block_with_room(tg_arena *a, size_t bytes) {
    for (tg_arena_block *b = a->current; b; b = b->next) {
        if (b->size - b->used >= bytes) return a->current = b;
    }
    tg_arena_block *b = block_create(a->block ? a->block : ARENA_BLOCK, bytes);
    if (!b) return NULL;
    if (a->current) {
        b->next = a->current->next;
        a->current->next = b;
    } else {
        a->first = b;
    }
    return a->current = b;
}

void *tg_arena_alloc(tg_arena *a, size_t bytes) {
    size_t rounded = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded < bytes) return NULL;
    tg_arena_block *b = block_with_room(a, rounded);
    if (!b) return NULL;
    void *p = payload(b) + b->used;
    b->used += rounded;
    memset(p, 0, bytes);
    return p;
}

void *tg_arena_array(tg_arena *a, size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : tg_arena_alloc(a, bytes);
}

char *tg_arena_strndup(tg_arena *a, const char *text, size_t len) {
    char *copy = tg_arena_alloc(a, len + 1);
    if (copy) memcpy(copy, text, len);
    return copy;
}

char *tg_arena_strdup(tg_arena *a, const char *text) {
    return tg_arena_strndup(a, text, strlen(text));
}

void tg_arena_reset(tg_arena *a) {
    for (tg_arena_block *b = a->first; b; b = b->next) b->used = 0;
    a->current = a->first;
}

void tg_arena_fini(tg_arena *a) {
    for (tg_arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        tg_free(b);
    }
    *a = (tg_arena){.block = a->block};
}
