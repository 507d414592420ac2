/* Objects by number, in an array sorted by it: few, found often, walked in order.
 *
 *     typedef struct thing { uint32_t id; ... } thing;      // the number comes first, and does not change
 *     tg_by_id things = {0};
 *     if (!tg_by_id_add(&things, t)) ...                    // out of memory
 *     thing *t = tg_by_id_find(&things, 7);                 // NULL: none
 *     for (size_t i = 0; i < things.n; i++) use(tg_by_id_at(&things, i));
 *     tg_by_id_fini(&things);                               // the objects stay the caller's */
#ifndef TG_BASE_BY_ID_H
#define TG_BASE_BY_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_by_id {
    size_t n; /* read-only */
    uint32_t **items;
    size_t cap;
} tg_by_id;

void *tg_by_id_find(const tg_by_id *a, uint32_t id);
void *tg_by_id_at(const tg_by_id *a, size_t i); /* i < n, by rising numbers */
/* The number is not there yet. False: out of memory. */
bool tg_by_id_add(tg_by_id *a, void *object);
void *tg_by_id_remove(tg_by_id *a, uint32_t id); /* what was removed; NULL: none */
void tg_by_id_fini(tg_by_id *a);

#endif
