/* Data pools opened from JSON, and samples compared with recorded ones. */
#ifndef TG_TEST_POOL_CASE_H
#define TG_TEST_POOL_CASE_H

#include "env-server/datapool/datapool.h"

#include <jansson.h>

/* Opens pool `id` with args (a JSON object) as a config would. */
tg_status pool_case_open(const char *id, const json_t *args, const tg_datapool_context *context,
                         tg_split split, tg_arena *arena, tg_datapool *p, tg_error *err);

/* want: id (text or number), `prompt`, references, `meta` (absent: not compared). The keys of prompt
 * and meta are given. why gets the first difference; returns whether there is none. */
bool pool_case_same(const tg_datapool *p, const tg_sample *s, const json_t *want,
                    const char *prompt, const char *meta, char *why, size_t size);

#endif
