/* Binary search; the numbers rise strictly. */
#include "common/base/by_id.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <string.h>

/* Where the number is, or would stand. */
static size_t position(const tg_by_id *a, uint32_t id) {
    size_t low = 0, high = a->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (*a->items[mid] < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void *tg_by_id_find(const tg_by_id *a, uint32_t id) {
    size_t at = position(a, id);
    return at < a->n && *a->items[at] == id ? a->items[at] : NULL;
}

void *tg_by_id_at(const tg_by_id *a, size_t i) {
    TG_ASSERT(i < a->n);
    return a->items[i];
}

bool tg_by_id_add(tg_by_id *a, void *object) {
    uint32_t *item = object;
    size_t at = position(a, *item);
    TG_ASSERT(at == a->n || *a->items[at] != *item);
    if (a->n == a->cap) {
        size_t cap = a->cap ? 2 * a->cap : 4;
        uint32_t **items = tg_realloc_array(a->items, cap, sizeof *items);
        if (!items) return false;
        a->items = items, a->cap = cap;
    }
    memmove(a->items + at + 1, a->items + at, (a->n - at) * sizeof *a->items);
    a->items[at] = item;
    a->n++;
    return true;
}

void *tg_by_id_remove(tg_by_id *a, uint32_t id) {
    size_t at = position(a, id);
    if (at == a->n || *a->items[at] != id) return NULL;
    void *object = a->items[at];
    a->n--;
    memmove(a->items + at, a->items + at + 1, (a->n - at) * sizeof *a->items);
    return object;
}

void tg_by_id_fini(tg_by_id *a) {
    tg_free(a->items);
    *a = (tg_by_id){0};
}
