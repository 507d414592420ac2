/* CRC-32 as zip archives have it (IEEE 802.3; not the CRC-32C of hash.h). */
#ifndef TG_BASE_CRC32_H
#define TG_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* crc 0 to start; chain by passing the last result. */
uint32_t tg_crc32(uint32_t crc, const void *bytes, size_t len);

#endif
