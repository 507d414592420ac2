/* Calls that must be answered by a certain time, on one timer. Loop thread only.
 *
 *     call->deadline.expire = ...;                       // called once, when the time is up
 *     tg_deadline_set(&server->deadlines, &call->deadline, 250);
 *     tg_deadline_clear(&server->deadlines, &call->deadline); */
#ifndef TG_ENV_DEADLINES_H
#define TG_ENV_DEADLINES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

typedef struct tg_deadline {
    void (*expire)(struct tg_deadline *d); /* it is not set any more */
    struct tg_deadline *next, *before;     /* private from here */
    uint64_t due_ms;
    bool set;
} tg_deadline;

typedef struct tg_deadlines {
    uv_timer_t timer;
    tg_deadline *first; /* in no order: there are few */
} tg_deadlines;

void tg_deadlines_init(tg_deadlines *ds, uv_loop_t *loop);
void tg_deadlines_fini(tg_deadlines *ds); /* the loop must turn once more */

/* ms 0: none. */
void tg_deadline_set(tg_deadlines *ds, tg_deadline *d, uint32_t ms);
void tg_deadline_clear(tg_deadlines *ds, tg_deadline *d); /* not set is fine */

#endif
