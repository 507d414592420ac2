/* The breaker's window is one word: a bit for each of the last calls, the newest lowest. */
#include "env-server/reward/score_breaker.h"

static void trip(tg_breaker *b, uint64_t now_ms) {
    b->state = TG_BREAKER_OPEN;
    b->opened_ms = now_ms;
    b->opened++;
    b->probing = false;
}

bool tg_breaker_allow(tg_breaker *b, uint64_t now_ms) {
    if (b->state == TG_BREAKER_OPEN && now_ms - b->opened_ms >= b->open_ms)
        b->state = TG_BREAKER_HALF_OPEN;
    if (b->state == TG_BREAKER_CLOSED) return true;
    if (b->state == TG_BREAKER_OPEN || b->probing) return false;
    b->probing = true;
    return true;
}

void tg_breaker_record(tg_breaker *b, uint64_t now_ms, bool succeeded) {
    if (!b->open_ms || b->state == TG_BREAKER_OPEN) return; /* a late answer decides nothing */
    if (b->state == TG_BREAKER_HALF_OPEN) {
        if (!succeeded) {
            trip(b, now_ms);
            return;
        }
        b->state = TG_BREAKER_CLOSED;
        b->window = 0;
        b->probing = false;
        return;
    }
    b->window = (b->window << 1 | !succeeded) & ((1U << TG_BREAKER_WINDOW) - 1);
    if (__builtin_popcount(b->window) >= TG_BREAKER_FAILURES) trip(b, now_ms);
}
