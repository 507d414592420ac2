/* A chained hash table of fixed size with a list by age through its entries. Invariant: every entry is in one chain and
 * in the list, and there are at most max_entries. */
#include "env-server/reward/score_cache.h"

#include "common/base/alloc.h"
#include "env-server/reward/score_text.h"

typedef struct entry {
    uint64_t key[2];
    struct entry *chain;
    struct entry *newer, *older;
    tg_arena arena; /* of the results */
    tg_score_result *results;
    size_t n;
} entry;

struct tg_score_cache {
    entry **table;
    size_t n_chains; /* a power of two */
    size_t count, max;
    entry *newest, *oldest;
};

tg_status tg_score_cache_create(tg_score_cache **out, size_t max_entries, tg_error *err) {
    tg_score_cache *c = *out = tg_alloc(sizeof *c);
    if (!c) return tg_fail_nomem(err, sizeof *c);
    c->max = max_entries ? max_entries : 1;
    c->n_chains = 16;
    while (c->n_chains < c->max) c->n_chains *= 2;
    c->table = tg_alloc_array(c->n_chains, sizeof *c->table);
    if (c->table) return TG_OK;
    tg_score_cache_destroy(out);
    return tg_fail_nomem(err, max_entries * sizeof *c->table);
}

static void free_entry(entry *e) {
    tg_arena_fini(&e->arena);
    tg_free(e);
}

void tg_score_cache_destroy(tg_score_cache **out) {
    tg_score_cache *c = *out;
    if (!c) return;
    for (entry *e = c->newest, *older; e; e = older) {
        older = e->older;
        free_entry(e);
    }
    tg_free(c->table);
    tg_free(c);
    *out = NULL;
}

static entry **chain_of(tg_score_cache *c, const uint64_t key[2]) {
    entry **at = &c->table[key[0] & (c->n_chains - 1)];
    while (*at && ((*at)->key[0] != key[0] || (*at)->key[1] != key[1])) at = &(*at)->chain;
    return at;
}

static void unlist(tg_score_cache *c, entry *e) {
    *(e->newer ? &e->newer->older : &c->newest) = e->older;
    *(e->older ? &e->older->newer : &c->oldest) = e->newer;
}

static void list_first(tg_score_cache *c, entry *e) {
    e->newer = NULL, e->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop_oldest(tg_score_cache *c) {
    entry *e = c->oldest;
    *chain_of(c, e->key) = e->chain;
    unlist(c, e);
    c->count--;
    free_entry(e);
}

bool tg_score_cache_get(tg_score_cache *c, const uint64_t key[2], tg_arena *arena,
                        tg_score_result *results, size_t n) {
    entry *e = *chain_of(c, key);
    if (!e || e->n != n) return false;
    unlist(c, e);
    list_first(c, e);
    return tg_score_results_copy(results, e->results, n, arena);
}

void tg_score_cache_put(tg_score_cache *c, const uint64_t key[2], const tg_score_result *results,
                        size_t n) {
    for (size_t i = 0; i < n; i++)
        if (results[i].status != TG_REWARD_OK) return;
    if (*chain_of(c, key)) return;
    entry *e = tg_alloc(sizeof *e);
    if (!e) return;
    e->results = tg_arena_array(&e->arena, n + 1, sizeof *e->results);
    if (!e->results || !tg_score_results_copy(e->results, results, n, &e->arena)) {
        free_entry(e);
        return;
    }
    if (c->count == c->max) drop_oldest(c);
    e->key[0] = key[0], e->key[1] = key[1], e->n = n;
    *chain_of(c, key) = e;
    list_first(c, e);
    c->count++;
}

size_t tg_score_cache_count(const tg_score_cache *c) {
    return c->count;
}
