/* Files: whole reads, read-only maps, and writes that are either complete or absent. */
#ifndef TG_BASE_FILE_H
#define TG_BASE_FILE_H

#include "common/base/buf.h"
#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Appends the whole file to out. TG_NOINPUT: not there, or no file; TG_IO: cannot be read; TG_DATA: larger than max_bytes. */
tg_status tg_file_read(const char *path, size_t max_bytes, tg_buf *out,
                       tg_error *err) TG_MUST_CHECK;

/* Appends what is left of an open stream and ends it with a NUL that does not count. name is for messages. */
tg_status tg_stream_read(FILE *in, const char *name, tg_buf *out, tg_error *err) TG_MUST_CHECK;

/* Writes all bytes, however many calls it takes; false with errno when it cannot. */
bool tg_fd_write(int fd, const void *bytes, size_t len);

/* Writes the text to stdout, flushes, and empties the buffer. TG_NOMEM when the buffer had failed. */
tg_status tg_stdout_write(tg_buf *text, tg_error *err) TG_MUST_CHECK;

/* Writes beside (path + ".tmp.<pid>"), fsyncs, renames over path, fsyncs the folder. On failure path is untouched. */
tg_status tg_file_write_atomic(const char *path, const void *bytes, size_t len,
                               tg_error *err) TG_MUST_CHECK;

/* Appends one record with a single write(2), creating the file. */
tg_status tg_file_append(const char *path, const void *bytes, size_t len,
                         tg_error *err) TG_MUST_CHECK;

/* Not there is fine. */
tg_status tg_file_remove(const char *path, tg_error *err) TG_MUST_CHECK;

/* A read-only memory map of a whole file; data is NULL for an empty file. */
typedef struct tg_filemap {
    const unsigned char *data;
    size_t len;
} tg_filemap;
tg_status tg_filemap_open(tg_filemap *m, const char *path, tg_error *err) TG_MUST_CHECK;
void tg_filemap_close(tg_filemap *m);
/* Whole pages of a part that was read and is not needed soon stop counting as this process's memory.
 * Reading them again is allowed and takes them from the file. */
void tg_filemap_release(const tg_filemap *m, const void *part, size_t len);

bool tg_path_exists(const char *path);
bool tg_path_is_dir(const char *path);
/* A link to what is not there: half of a copied cache. */
bool tg_path_is_dangling(const char *path);
/* mkdir -p. */
tg_status tg_dir_create(const char *path, tg_error *err) TG_MUST_CHECK;
/* A new folder beside `path`, with its parents: *made is path + ".tmp.<pid>", with one more number where that is taken (owned, tg_free). */
tg_status tg_dir_create_beside(const char *path, char **made, tg_error *err) TG_MUST_CHECK;
/* rm -r of a folder of plain files and folders; not there is fine. */
tg_status tg_dir_remove(const char *path, tg_error *err) TG_MUST_CHECK;
/* fsync a folder, so that a rename in it survives a power cut. */
tg_status tg_dir_sync(const char *path, tg_error *err) TG_MUST_CHECK;
/* The same of the folder that path lies in. */
tg_status tg_dir_sync_parent(const char *path, tg_error *err) TG_MUST_CHECK;
/* "a/b" + "c" -> owned "a/b/c" (tg_free); an absolute second part wins. NULL: out of memory. */
char *tg_path_join(const char *dir, const char *name);

#endif
