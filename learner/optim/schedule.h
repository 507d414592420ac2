/* Learning-rate schedules with the names and formulas of transformers. */
#ifndef TG_OPTIM_SCHEDULE_H
#define TG_OPTIM_SCHEDULE_H

#include <stdint.h>

typedef enum tg_schedule_kind {
    TG_SCHEDULE_CONSTANT,
    TG_SCHEDULE_LINEAR, /* to 0 at the last step */
    TG_SCHEDULE_COSINE, /* half a wave, to 0 at the last step */
    TG_SCHEDULE_CONSTANT_WITH_WARMUP
} tg_schedule_kind;

typedef struct tg_schedule {
    tg_schedule_kind kind;
    double peak;
    int64_t warmup, total; /* steps */
} tg_schedule;

tg_schedule_kind tg_schedule_find(const char *lr_scheduler_type); /* one of the four names */
double tg_schedule_rate(const tg_schedule *s,
                        int64_t step); /* of the step with this number, from 0 */

#endif
