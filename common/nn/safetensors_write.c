/* Writing: header, then the tensors in order, into a file beside the target that is renamed when it
 * is safe on disk. Tensors that live on a device are asked for in pieces, so that no second copy of
 * a model is ever in memory. */
#include "common/nn/safetensors.h"

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 4 * 1024 * 1024 };

static void put_string(tg_buf *b, const char *text) {
    tg_buf_putc(b, '"');
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            tg_buf_printf(b, "\\%c", *p);
        else if (*p < 32)
            tg_buf_printf(b, "\\u%04x", *p);
        else
            tg_buf_putc(b, (char)*p);
    }
    tg_buf_putc(b, '"');
}

static size_t tensor_bytes(const tg_st_write *t) {
    size_t n = tg_dtype_bytes(t->dtype);
    for (int i = 0; i < t->ndim; i++) n *= (size_t)t->shape[i];
    return n;
}

/* Length and JSON text, padded with spaces so that the data starts at a multiple of 64: those who map the file (we, torch) then
 * find large tensors aligned for vector loads. */
static void put_header(tg_buf *out, const tg_st_write *tensors, size_t n, const char *metadata) {
    tg_buf_append(out, "\0\0\0\0\0\0\0\0", 8);
    tg_buf_putc(out, '{');
    const char *comma = "";
    if (metadata) {
        tg_buf_printf(out, "\"__metadata__\":%s", metadata);
        comma = ",";
    }
    size_t offset = 0;
    for (size_t i = 0; i < n; i++, comma = ",") {
        const tg_st_write *t = &tensors[i];
        tg_buf_puts(out, comma);
        put_string(out, t->name);
        tg_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", tg_dtype_name(t->dtype));
        for (int d = 0; d < t->ndim; d++)
            tg_buf_printf(out, "%s%lld", d ? "," : "", (long long)t->shape[d]);
        size_t end = offset + tensor_bytes(t);
        tg_buf_printf(out, "],\"data_offsets\":[%zu,%zu]}", offset, end);
        offset = end;
    }
    tg_buf_putc(out, '}');
    while (out->len % 64 && !out->failed) tg_buf_putc(out, ' ');
    if (out->failed) return;
    uint64_t len = out->len - 8;
    for (int i = 0; i < 8; i++) out->data[i] = (char)(len >> (8 * i));
}

struct writer {
    int fd;
    const char *path;
    char *piece; /* PIECE bytes */
    tg_st_source *source;
    void *arg;
};

static tg_status write_tensor(struct writer *w, const tg_st_write *t, size_t index, tg_error *err) {
    size_t bytes = tensor_bytes(t);
    for (size_t at = 0; at < bytes;) {
        size_t n = t->data ? bytes : TG_MIN(bytes - at, (size_t)PIECE);
        const char *from = t->data;
        if (!from) {
            /* NOLINTNEXTLINE: a tensor without data has a source */
            tg_status st = w->source(w->arg, index, at, w->piece, n, err);
            if (st != TG_OK) return st;
            from = w->piece;
        }
        if (!tg_fd_write(w->fd, from, n))
            return tg_fail_errno(err, TG_IO, "%s: write failed", w->path);
        at += n;
    }
    return TG_OK;
}

static tg_status write_body(struct writer *w, const tg_buf *header, const tg_st_write *tensors,
                            size_t n, tg_error *err) {
    if (!tg_fd_write(w->fd, header->data, header->len))
        return tg_fail_errno(err, TG_IO, "%s: write failed", w->path);
    for (size_t i = 0; i < n; i++) {
        tg_status st = write_tensor(w, &tensors[i], i, err);
        if (st != TG_OK) return st;
    }
    if (fsync(w->fd)) return tg_fail_errno(err, TG_IO, "%s: write failed", w->path);
    return TG_OK;
}

static tg_status write_and_rename(struct writer *w, const char *path, const tg_buf *header,
                                  const tg_st_write *tensors, size_t n, tg_error *err) {
    w->fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (w->fd < 0) return tg_fail_errno(err, TG_IO, "%s: cannot create", w->path);
    tg_status st = write_body(w, header, tensors, n, err);
    if (close(w->fd) && st == TG_OK) st = tg_fail_errno(err, TG_IO, "%s: close failed", w->path);
    if (st == TG_OK && rename(w->path, path))
        st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", w->path, path);
    if (st != TG_OK) unlink(w->path);
    return st == TG_OK ? tg_dir_sync_parent(path, err) : st;
}

tg_status tg_safetensors_write_from(const char *path, const tg_st_write *tensors, size_t n,
                                    const char *metadata, tg_st_source *source, void *arg,
                                    tg_error *err) {
    tg_buf header = {0}, beside = {0};
    put_header(&header, tensors, n, metadata);
    tg_buf_printf(&beside, "%s.tmp.%d", path, (int)getpid());
    struct writer w = {.path = beside.data, .source = source, .arg = arg};
    w.piece = source ? tg_alloc_aligned(PIECE, 64) : NULL;
    tg_status st;
    if (header.failed || beside.failed || (source && !w.piece))
        st = tg_fail_nomem(err, PIECE);
    else
        st = write_and_rename(&w, path, &header, tensors, n, err);
    tg_free(w.piece);
    tg_buf_fini(&header);
    tg_buf_fini(&beside);
    return st;
}

tg_status tg_safetensors_write(const char *path, const tg_st_write *tensors, size_t n,
                               const char *metadata, tg_error *err) {
    return tg_safetensors_write_from(path, tensors, n, metadata, NULL, NULL, err);
}
