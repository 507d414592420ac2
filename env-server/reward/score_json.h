/* The JSON that functions in other languages read and write: one object each way.
 *
 *     {"id": 7, "ranked": false, "items": [{"prompt": "…", "completion": "…", "references": ["…"],
 *                                           "meta": {…}, "n_tokens": 12, "done": true}, …]}
 *
 *     {"id": 7, "results": [0.5, {"value": 0.5, "components": {"fluency": 1.0}}, {"error": "why"}]}
 *     {"id": 7, "error": "why none has a value"}
 *
 * One result for each item, in their order. */
#ifndef TG_ENV_SCORE_JSON_H
#define TG_ENV_SCORE_JSON_H

#include "common/base/buf.h"
#include "env-server/reward/score.h"

/* Appends the request without a line's end; out->failed: no memory. */
void tg_score_json_write(tg_buf *out, uint64_t id, const tg_score_call *call);

/* Reads a reply for n items. want_id: it must repeat this id. TG_DATA: not such an object, another id, or not n
 * results; TG_UNAVAILABLE: it is {"error": …}. A result that is no finite number is TG_REWARD_INVALID, an error
 * TG_REWARD_FAILED. Strings are copied to the arena. */
tg_status tg_score_json_read(const char *text, size_t len, const uint64_t *want_id, size_t n,
                             tg_score_result *results, tg_arena *arena,
                             tg_error *err) TG_MUST_CHECK;

#endif
