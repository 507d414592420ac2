/* Time. Only the monotonic clock decides anything; the wall clock is for log lines and file names. */
#ifndef TG_BASE_CLOCK_H
#define TG_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t tg_clock_ns(void); /* monotonic */
uint64_t tg_clock_ms(void); /* monotonic */
double tg_clock_seconds(void);

/* "2026-11-16 07:12:03" (local time), size at least 20. */
void tg_clock_text(char *out, size_t size);

#endif
