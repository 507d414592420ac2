/* Open addressing with linear probing, at most half full. Removal moves later entries up, so there are no
 * tombstones: a chain of probes ends at the first empty place, always. */
#include "common/net/session_table.h"

#include "common/base/alloc.h"

typedef struct tg_session_entry {
    uint64_t key;
    struct tg_session *session; /* NULL: empty */
} tg_session_entry;

enum { FIRST_SIZE = 64 };

static size_t home(const tg_session_table *t, uint64_t key) {
    uint64_t x = key ^ t->secret;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
    x = (x ^ x >> 32) * (t->secret | 1);
    return (size_t)(x ^ x >> 29) & (t->size - 1);
}

/* The key's place, or the empty one where it would stand. The table is not empty. */
static size_t place(const tg_session_table *t, uint64_t key) {
    size_t at = home(t, key);
    while (t->entries[at].session && t->entries[at].key != key) at = (at + 1) & (t->size - 1);
    return at;
}

static bool grow(tg_session_table *t) {
    tg_session_table bigger = {.size = t->size ? 2 * t->size : FIRST_SIZE, .secret = t->secret};
    bigger.entries = tg_alloc_array(bigger.size, sizeof *bigger.entries);
    if (!bigger.entries) return false;
    for (size_t i = 0; i < t->size; i++) {
        if (t->entries[i].session)
            bigger.entries[place(&bigger, t->entries[i].key)] = t->entries[i];
    }
    bigger.used = t->used;
    tg_free(t->entries);
    *t = bigger;
    return true;
}

bool tg_session_table_put(tg_session_table *t, uint64_t key, struct tg_session *session) {
    if (2 * (t->used + 1) > t->size && !grow(t)) return false;
    tg_session_entry *e = &t->entries[place(t, key)];
    if (!e->session) t->used++;
    *e = (tg_session_entry){key, session};
    return true;
}

struct tg_session *tg_session_table_get(const tg_session_table *t, uint64_t key) {
    return t->size ? t->entries[place(t, key)].session : NULL;
}

void tg_session_table_remove(tg_session_table *t, uint64_t key, const struct tg_session *session) {
    if (!t->size) return;
    size_t hole = place(t, key), mask = t->size - 1;
    if (t->entries[hole].session != session || !session) return;
    t->used--;
    for (size_t at = (hole + 1) & mask; t->entries[at].session; at = (at + 1) & mask) {
        size_t distance = (at - home(t, t->entries[at].key)) & mask;
        if (distance < ((at - hole) & mask)) continue; /* its home lies behind the hole */
        t->entries[hole] = t->entries[at];
        hole = at;
    }
    t->entries[hole].session = NULL;
}

void tg_session_table_fini(tg_session_table *t) {
    tg_free(t->entries);
    *t = (tg_session_table){0};
}
