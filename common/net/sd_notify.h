/* Words to the service manager, without libsystemd: one datagram to $NOTIFY_SOCKET. */
#ifndef TG_NET_SD_NOTIFY_H
#define TG_NET_SD_NOTIFY_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* "READY=1\nSTATUS=…" and the like; false: nobody is listening, or it failed. */
bool tg_sd_notify(const char *fmt, ...) TG_PRINTF(1, 2);
/* Milliseconds within which WATCHDOG=1 is expected (WatchdogSec=); 0: it is not. */
uint64_t tg_sd_watchdog_ms(void);

#endif
