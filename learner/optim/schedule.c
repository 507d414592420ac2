#include "learner/optim/schedule.h"

#include "common/base/check.h"

#include <math.h>
#include <string.h>

tg_schedule_kind tg_schedule_find(const char *name) {
    if (!strcmp(name, "linear")) return TG_SCHEDULE_LINEAR;
    if (!strcmp(name, "cosine")) return TG_SCHEDULE_COSINE;
    if (!strcmp(name, "constant_with_warmup")) return TG_SCHEDULE_CONSTANT_WITH_WARMUP;
    return TG_SCHEDULE_CONSTANT;
}

double tg_schedule_rate(const tg_schedule *s, int64_t step) {
    if (s->kind == TG_SCHEDULE_CONSTANT) return s->peak;
    if (step < s->warmup) return s->peak * (double)step / (double)TG_MAX(1, s->warmup);
    double rest = (double)TG_MAX(1, s->total - s->warmup), gone = (double)(step - s->warmup);
    switch (s->kind) {
    case TG_SCHEDULE_LINEAR: return s->peak * fmax(0, (double)(s->total - step) / rest);
    case TG_SCHEDULE_COSINE:
        return s->peak * fmax(0, 0.5 * (1 + cos(3.14159265358979323846 * gone / rest)));
    default: return s->peak;
    }
}
