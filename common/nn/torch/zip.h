/* The zip archives that torch.save writes: entries stored as they are (not compressed), sizes of any
 * length. Only the central directory is trusted, and only after every entry was found to lie inside the
 * file without touching another. */
#ifndef TG_NN_TORCH_ZIP_H
#define TG_NN_TORCH_ZIP_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tg_zip_entry {
    const char *name; /* in the file, name_len bytes */
    size_t name_len;
    const unsigned char *data; /* in the file */
    size_t size;
    size_t begin; /* of its local header in the file */
    uint32_t crc; /* CRC-32 of its data; 0: torch can be told not to count one */
} tg_zip_entry;

typedef struct tg_zip {
    tg_zip_entry *entries; /* sorted by name */
    size_t n;
} tg_zip;

/* Whether the bytes begin as an archive does. */
bool tg_zip_is(const unsigned char *bytes, size_t len);
/* The bytes are borrowed until close. TG_DATA says what is wrong: cut off, an entry outside the file or over another,
 * compressed, encrypted. */
tg_status tg_zip_open(tg_zip *z, const unsigned char *bytes, size_t len,
                      tg_error *err) TG_MUST_CHECK;
void tg_zip_close(tg_zip *z);
/* The entry called prefix + name; NULL: none. */
const tg_zip_entry *tg_zip_find(const tg_zip *z, const char *prefix, size_t prefix_len,
                                const char *name, size_t name_len);

#endif
