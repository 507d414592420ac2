/* Metrics and rewards by id and JSON arguments on texts from JSON, for tests that compare with recordings. */
#ifndef TG_TEST_SCORING_H
#define TG_TEST_SCORING_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/metric/metric.h"
#include "env-server/reward/reward.h"

#include <jansson.h>

/* {"prediction", "references", "prompt", "meta"} as a metric sees it. Borrows the object's texts; the rest lives in the arena. */
tg_metric_item scoring_item(const json_t *object, tg_arena *arena);

/* args: an object, or NULL. Known but not built: TG_UNSUPPORTED. */
tg_status scoring_metric(const char *id, const json_t *args, bool compat,
                         const tg_metric_item *items, size_t n, tg_metric_out *out, tg_error *err);
tg_status scoring_reward(const char *id, const json_t *args, bool compat,
                         const tg_metric_item *items, size_t n, const bool *done,
                         tg_reward_value *out, tg_error *err);
/* NULL: no such key. */
const tg_metric_value *scoring_value(const tg_metric_out *out, const char *key);

#endif
