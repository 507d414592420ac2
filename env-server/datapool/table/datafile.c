/* Mapped data files. The map never changes after opening; the count of bytes read is atomic. */
#include "env-server/datapool/table/datafile.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/str.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 1 << 20 };
static const size_t RELEASE_AFTER = (size_t)64 << 20, WHOLE_DIGEST = (size_t)64 << 20;

struct tg_datafile {
    char *path;
    tg_filemap map;
    atomic_size_t read; /* since the last release */
    atomic_size_t last; /* where the last read ended */
};

/* Unpacks into fd. */
static tg_status unpack(const char *path, int fd, size_t *len, tg_error *err) {
    gzFile in = gzopen(path, "rb");
    if (!in)
        return errno == ENOENT ? tg_fail(err, TG_NOINPUT, "%s: not found", path)
                               : tg_fail_errno(err, TG_IO, "%s: cannot be opened", path);
    unsigned char *chunk = tg_alloc(CHUNK);
    tg_status st = chunk ? TG_OK : tg_fail_nomem(err, CHUNK);
    int n = 0;
    *len = 0;
    while (st == TG_OK && (n = gzread(in, chunk, CHUNK)) > 0) {
        if (!tg_fd_write(fd, chunk, (size_t)n))
            st = tg_fail_errno(err, TG_IO, "%s: cannot be unpacked into a temporary file", path);
        *len += (size_t)n;
    }
    int code = Z_OK;
    const char *why = gzerror(in, &code);
    if (st == TG_OK && (n < 0 || (code != Z_OK && code != Z_STREAM_END)))
        st = tg_fail(err, TG_DATA, "%s: not a whole gzip file: %s", path, why);
    gzclose(in);
    tg_free(chunk);
    return st;
}

static tg_status open_packed(tg_filemap *m, const char *path, tg_error *err) {
    const char *dir = getenv("TMPDIR");
    char name[512];
    snprintf(name, sizeof name, "%.400s/textgen-data-XXXXXX", dir && *dir ? dir : "/tmp");
    int fd = mkstemp(name);
    if (fd < 0) return tg_fail_errno(err, TG_IO, "%s: no temporary file in its folder", name);
    unlink(name);
    size_t len = 0;
    tg_status st = unpack(path, fd, &len, err);
    if (st == TG_OK && len) {
        void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            st = tg_fail_errno(err, TG_IO, "%s: cannot map what was unpacked", path);
        else
            *m = (tg_filemap){p, len};
    }
    close(fd);
    return st;
}

tg_status tg_datafile_open(tg_datafile **out, const char *path, tg_error *err) {
    *out = NULL;
    tg_datafile *f = tg_alloc(sizeof *f);
    char *name = tg_strdup(path);
    tg_status st = f && name ? TG_OK : tg_fail_nomem(err, sizeof *f);
    if (st == TG_OK && tg_path_is_dir(path))
        st = tg_fail(err, TG_NOINPUT, "%s: is a folder; expected a file", path);
    if (st == TG_OK)
        st = tg_str_ends(path, ".gz") ? open_packed(&f->map, path, err)
                                      : tg_filemap_open(&f->map, path, err);
    if (st != TG_OK) {
        tg_free(f);
        tg_free(name);
        return st;
    }
    f->path = name;
    *out = f;
    return TG_OK;
}

void tg_datafile_close(tg_datafile **f) {
    if (!*f) return;
    tg_filemap_close(&(*f)->map);
    tg_free((*f)->path);
    tg_free(*f);
    *f = NULL;
}

const char *tg_datafile_path(const tg_datafile *f) {
    return f->path;
}

const char *tg_datafile_bytes(const tg_datafile *f, size_t *len) {
    *len = f->map.len;
    return f->map.data ? (const char *)f->map.data : "";
}

void tg_datafile_used(tg_datafile *f, const void *at, size_t len) {
    const size_t around = 512 << 10; /* that the system may map around a page that is touched */
    if (!f->map.data) return;
    size_t begin = (size_t)((const unsigned char *)at - f->map.data);
    size_t last = atomic_exchange(&f->last, begin + len);
    size_t gap = begin > last ? begin - last : last - begin;
    size_t cost = gap < around ? len + gap : len + around;
    if (atomic_fetch_add(&f->read, cost) + cost < RELEASE_AFTER) return;
    atomic_store(&f->read, 0);
    tg_filemap_release(&f->map, f->map.data, f->map.len);
}

uint64_t tg_datafile_digest(tg_datafile *f) {
    enum { BLOCKS = 1024, BLOCK = 4096 };
    size_t len = f->map.len;
    if (len <= WHOLE_DIGEST) {
        uint64_t hash = tg_hash64(f->map.data, len);
        tg_datafile_used(f, f->map.data, len);
        return hash;
    }
    uint64_t hash = len;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t at = (len - BLOCK) / (BLOCKS - 1) * i;
        uint64_t parts[] = {hash, tg_hash64(f->map.data + at, BLOCK)};
        hash = tg_hash64(parts, sizeof parts);
        tg_datafile_used(f, f->map.data + at, BLOCK);
    }
    return hash;
}

uint64_t tg_datafile_line(tg_datafile *f, uint64_t at) {
    const char *p = (const char *)f->map.data, *end = p + (at < f->map.len ? at : f->map.len);
    uint64_t line = 1;
    while (p < end) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        if (!next) break;
        tg_datafile_used(f, p, (size_t)(next - p));
        line++;
        p = next + 1;
    }
    return line;
}
