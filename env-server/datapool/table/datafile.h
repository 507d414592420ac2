/* One file of a data set, mapped read-only. Text that is packed with gzip is unpacked once into a
 * temporary file that has no name, so that it can be mapped as well.
 *
 * What was read is given back to the system now and then: reading a file of any size, in any order,
 * keeps only a bounded part of it in this process's memory. */
#ifndef TG_ENV_DATAFILE_H
#define TG_ENV_DATAFILE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tg_datafile tg_datafile;

/* TG_NOINPUT: not there; TG_DATA: a broken gzip file. */
tg_status tg_datafile_open(tg_datafile **out, const char *path, tg_error *err) TG_MUST_CHECK;
void tg_datafile_close(tg_datafile **f);

const char *tg_datafile_path(const tg_datafile *f);
const char *tg_datafile_bytes(const tg_datafile *f, size_t *len); /* "" when the file is empty */
/* len bytes were read at `at`; any thread. Pointers into the file stay valid. */
void tg_datafile_used(tg_datafile *f, const void *at, size_t len);
/* Of the length and the content; of a file above 64 MiB the content is sampled. */
uint64_t tg_datafile_digest(tg_datafile *f);

/* 1-based number of the line that byte `at` is in. */
uint64_t tg_datafile_line(tg_datafile *f, uint64_t at);

#endif
