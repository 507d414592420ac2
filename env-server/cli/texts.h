/* The texts that `score` judges: {"prediction", "references", "prompt", "meta"}, one object a line. */
#ifndef TG_ENV_TEXTS_H
#define TG_ENV_TEXTS_H

#include "common/base/arena.h"
#include "common/base/status.h"
#include "env-server/metric/metric.h"

typedef struct tg_texts {
    tg_arena arena; /* owns everything below */
    tg_metric_item *items;
    size_t n, cap;
} tg_texts;

/* path NULL or "-": stdin. TG_DATA with file and line for a bad one, or when there is none. */
tg_status tg_texts_read(tg_texts *t, const char *path, tg_error *err) TG_MUST_CHECK;
void tg_texts_fini(tg_texts *t);

#endif
