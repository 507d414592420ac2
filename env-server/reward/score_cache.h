/* Results of deterministic functions by content: a bounded table that forgets what was not asked for longest.
 *
 *     tg_score_cache_create(&cache, 4096, err);
 *     if (tg_score_cache_get(cache, key, arena, results, n)) ...      // copies
 *     tg_score_cache_put(cache, key, results, n);
 *     tg_score_cache_destroy(&cache);
 *
 * Not thread safe: its owner locks. */
#ifndef TG_ENV_SCORE_CACHE_H
#define TG_ENV_SCORE_CACHE_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "proto/messages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_score_cache tg_score_cache;

tg_status tg_score_cache_create(tg_score_cache **out, size_t max_entries,
                                tg_error *err) TG_MUST_CHECK;
void tg_score_cache_destroy(tg_score_cache **cache);
/* n results are copied into the arena. False: not there (or stored with another n), or no memory for the copy. */
bool tg_score_cache_get(tg_score_cache *cache, const uint64_t key[2], tg_arena *arena,
                        tg_score_result *results, size_t n);
/* Keeps copies, if all of them are OK; without memory nothing is kept. */
void tg_score_cache_put(tg_score_cache *cache, const uint64_t key[2],
                        const tg_score_result *results, size_t n);
size_t tg_score_cache_count(const tg_score_cache *cache);

#endif
