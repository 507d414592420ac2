/* Time. Only the monotonic clock decides anything; the wall clock is for log lines and file names. */
#ifndef TG_BASE_CLOCK_H
#define TG_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

uint64_t tg_clock_ns(void); /* monotonic */
uint64_t tg_clock_ms(void); /* monotonic */
double tg_clock_seconds(void);

/* Signals to stop that come within this time are one stop, and no order to leave at once: `timeout` sends them to the process and to its
 * group, systemd to every process of a service, of which one passes them on. */
enum { TG_ONE_STOP_MS = 500 };

/* "2026-11-16 07:12:03" (local time), size at least 20. */
void tg_clock_text(char *out, size_t size);

#endif
