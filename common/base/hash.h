/* Hashes: a fast unkeyed one for tables and digests of content, and SipHash-2-4 for state digests. */
#ifndef TG_BASE_HASH_H
#define TG_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t tg_hash64(const void *bytes, size_t len);

/* SipHash-2-4 with a 128-bit key (k0, k1). Chain a digest by passing the previous value as k0. */
uint64_t tg_siphash(uint64_t k0, uint64_t k1, const void *bytes, size_t len);

/* CRC-32C (Castagnoli), as in the frame header. crc 0 to start; chain by passing the last result. */
uint32_t tg_crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
