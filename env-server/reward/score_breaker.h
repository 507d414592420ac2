/* A circuit breaker: a function that failed in half of its last 20 calls is left alone for a while, then tried with one
 * call; that one decides.
 *
 *     tg_breaker b = {.open_ms = 5000};
 *     if (!tg_breaker_allow(&b, now_ms)) ...          // fail at once: nothing was called
 *     tg_breaker_record(&b, now_ms, succeeded);       // after every allowed call
 *
 * Not thread safe: its owner locks. */
#ifndef TG_ENV_SCORE_BREAKER_H
#define TG_ENV_SCORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum { TG_BREAKER_WINDOW = 20, TG_BREAKER_FAILURES = 10 };

typedef enum tg_breaker_state {
    TG_BREAKER_CLOSED,
    TG_BREAKER_OPEN,
    TG_BREAKER_HALF_OPEN
} tg_breaker_state;

typedef struct tg_breaker {
    uint32_t open_ms;       /* how long it stays open; 0: never opens */
    tg_breaker_state state; /* read-only */
    uint64_t opened;        /* times it opened */
    uint32_t window;        /* private: bit i: the i-th last call failed */
    uint64_t opened_ms;
    bool probing; /* half open: the one call is under way */
} tg_breaker;

bool tg_breaker_allow(tg_breaker *b, uint64_t now_ms);
void tg_breaker_record(tg_breaker *b, uint64_t now_ms, bool succeeded);

#endif
