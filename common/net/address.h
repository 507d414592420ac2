/* Addresses: ipc://PATH and tcp://HOST:PORT, and who may reach them. */
#ifndef TG_NET_ADDRESS_H
#define TG_NET_ADDRESS_H

#include "common/base/status.h"

#include <stdbool.h>

/* TG_USAGE: not an address we speak. */
tg_status tg_address_check(const char *address, tg_error *err) TG_MUST_CHECK;
/* Before listening. ipc: makes the folder (mode 0700) when it is missing. tcp: TG_DENIED for an
 * address that other machines reach, unless open: keys are used, or the user wants it without. */
tg_status tg_address_prepare(const char *address, bool open, tg_error *err) TG_MUST_CHECK;
/* ipc, or tcp on the loopback interface. */
bool tg_address_is_local(const char *address);
bool tg_address_is_ipc(const char *address);

#endif
