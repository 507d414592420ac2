#include "common/base/file.h"

#include "common/base/alloc.h"
#include "common/base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static tg_status open_failed(const char *path, tg_error *err) {
    if (errno == ENOENT || errno == ENOTDIR)
        return tg_fail(err, TG_NOINPUT,
                       tg_path_is_dangling(path) ? "%s: is a link to a file that is not there"
                                                 : "%s: no such file",
                       path);
    return tg_fail_errno(err, errno == EACCES ? TG_NOINPUT : TG_IO, "%s: cannot open", path);
}

/* What a folder holds must be files: a pipe in it could be waited for without end, a device be without end. Below /dev the user
 * names them on purpose (/dev/stdin, and /dev/fd/63 of a shell's process substitution). */
static bool is_readable(const char *path, const struct stat *st) {
    return S_ISREG(st->st_mode) || (!S_ISDIR(st->st_mode) && !strncmp(path, "/dev/", 5));
}

static tg_status open_regular(const char *path, int *fd, size_t *len, tg_error *err) {
    struct stat st;
    if (stat(path, &st)) return open_failed(path, err);
    if (!is_readable(path, &st)) return tg_fail(err, TG_NOINPUT, "%s: is not a file", path);
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) return open_failed(path, err);
    if (fstat(*fd, &st) || !is_readable(path, &st)) { /* exchanged in between */
        close(*fd);
        return tg_fail(err, TG_NOINPUT, "%s: is not a file", path);
    }
    *len = (size_t)st.st_size;
    return TG_OK;
}

tg_status tg_file_read(const char *path, size_t max_bytes, tg_buf *out, tg_error *err) {
    int fd;
    size_t len;
    tg_status st = open_regular(path, &fd, &len, err);
    if (st != TG_OK) return st;
    size_t got = 0;
    for (;;) { /* reads to the end, not to st_size: /proc files and pipes report 0 */
        char *at = tg_buf_reserve(out, 64 * 1024);
        if (!at) {
            st = tg_fail_nomem(err, got + 64 * 1024);
            break;
        }
        ssize_t n = read(fd, at, 64 * 1024);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) st = tg_fail_errno(err, TG_IO, "%s: read failed", path);
        if (n <= 0) break;
        got += (size_t)n;
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (got > max_bytes) {
            st = tg_fail(err, TG_DATA, "%s: larger than the %zu bytes allowed here", path,
                         max_bytes);
            break;
        }
    }
    close(fd);
    if (st == TG_OK) tg_buf_append(out, "", 0);
    return st;
}

tg_status tg_stream_read(FILE *in, const char *name, tg_buf *out, tg_error *err) {
    enum { PIECE = 1 << 16 };
    for (size_t n = 1; n;) {
        char *room = tg_buf_reserve(out, PIECE);
        if (!room) return tg_fail_nomem(err, out->len + PIECE);
        n = fread(room, 1, PIECE, in);
        out->len += n;
    }
    if (ferror(in)) return tg_fail_errno(err, TG_IO, "%s: read failed", name);
    tg_buf_append(out, "", 0);
    return TG_OK;
}

tg_status tg_stdout_write(tg_buf *text, tg_error *err) {
    if (text->failed) return tg_fail_nomem(err, text->len);
    if ((text->len && fwrite(text->data, 1, text->len, stdout) != text->len) || fflush(stdout))
        return tg_fail_errno(err, TG_IO, "cannot write to standard output");
    tg_buf_reset(text);
    return TG_OK;
}

bool tg_fd_write(int fd, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

tg_status tg_file_write_atomic(const char *path, const void *bytes, size_t len, tg_error *err) {
    tg_buf tmp = {0};
    tg_buf_printf(&tmp, "%s.tmp.%d", path, (int)getpid());
    if (tmp.failed) return tg_fail_nomem(err, strlen(path) + 16);
    int fd = open(tmp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    tg_status st = TG_OK;
    if (fd < 0) {
        st = tg_fail_errno(err, TG_IO, "%s: cannot create", tmp.data);
    } else {
        if (!tg_fd_write(fd, bytes, len) || fsync(fd))
            st = tg_fail_errno(err, TG_IO, "%s: write failed", tmp.data);
        if (close(fd) && st == TG_OK) st = tg_fail_errno(err, TG_IO, "%s: close failed", tmp.data);
        if (st == TG_OK && rename(tmp.data, path))
            st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", tmp.data, path);
        if (st != TG_OK) unlink(tmp.data);
    }
    tg_buf_fini(&tmp);
    return st == TG_OK ? tg_dir_sync_parent(path, err) : st;
}

tg_status tg_file_append(const char *path, const void *bytes, size_t len, tg_error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return tg_fail_errno(err, TG_IO, "%s: cannot open for appending", path);
    tg_status st = TG_OK;
    if (!tg_fd_write(fd, bytes, len)) st = tg_fail_errno(err, TG_IO, "%s: write failed", path);
    if (close(fd) && st == TG_OK) st = tg_fail_errno(err, TG_IO, "%s: close failed", path);
    return st;
}

tg_status tg_file_remove(const char *path, tg_error *err) {
    return unlink(path) == 0 || errno == ENOENT
               ? TG_OK
               : tg_fail_errno(err, TG_IO, "%s: cannot remove", path);
}

tg_status tg_filemap_open(tg_filemap *m, const char *path, tg_error *err) {
    *m = (tg_filemap){0};
    int fd;
    size_t len;
    tg_status st = open_regular(path, &fd, &len, err);
    if (st != TG_OK) return st;
    if (len) {
        void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            st = tg_fail_errno(err, errno == ENOMEM ? TG_NOMEM : TG_IO, "%s: cannot map", path);
        else
            *m = (tg_filemap){p, len};
    }
    close(fd);
    return st;
}

void tg_filemap_close(tg_filemap *m) {
    if (m->data) munmap((void *)m->data, m->len);
    *m = (tg_filemap){0};
}

void tg_filemap_release(const tg_filemap *m, const void *part, size_t len) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t begin = (size_t)((const unsigned char *)part - m->data), end = begin + len;
    TG_ASSERT((const unsigned char *)part >= m->data && end <= m->len);
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    /* a hint: memory is only kept longer when it fails */
    if (end > begin) (void)madvise((void *)(m->data + begin), end - begin, MADV_DONTNEED);
}

bool tg_path_exists(const char *path) {
    struct stat st;
    return !stat(path, &st);
}

bool tg_path_is_dir(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool tg_path_is_dangling(const char *path) {
    struct stat st;
    return !lstat(path, &st) && S_ISLNK(st.st_mode) && !tg_path_exists(path);
}

tg_status tg_dir_create(const char *path, tg_error *err) {
    char *copy = tg_strdup(path);
    if (!copy) return tg_fail_nomem(err, strlen(path));
    tg_status st = TG_OK;
    for (char *p = copy + 1; st == TG_OK; p++) {
        if (*p && *p != '/') continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(copy, 0755) && errno != EEXIST)
            st = tg_fail_errno(err, TG_IO, "%s: cannot create folder", copy);
        *p = kept;
        if (!kept) break;
    }
    if (st == TG_OK && !tg_path_is_dir(path)) st = tg_fail(err, TG_IO, "%s: is not a folder", path);
    tg_free(copy);
    return st;
}

static tg_status create_parent(const char *path, tg_error *err) {
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return TG_OK;
    char *dir = tg_strndup(path, (size_t)(slash - path));
    tg_status st = dir ? tg_dir_create(dir, err) : tg_fail_nomem(err, strlen(path));
    tg_free(dir);
    return st;
}

tg_status tg_dir_create_beside(const char *path, char **made, tg_error *err) {
    enum { TRIES = 1000 };
    *made = NULL;
    tg_status st = create_parent(path, err);
    for (int i = 0; st == TG_OK && !*made; i++) {
        tg_buf name = {0};
        tg_buf_printf(&name, "%s.tmp.%d", path, (int)getpid());
        if (i) tg_buf_printf(&name, ".%d", i);
        if (name.failed)
            st = tg_fail_nomem(err, strlen(path) + 16);
        else if (!mkdir(name.data, 0755))
            *made = tg_buf_take(&name);
        else if (errno != EEXIST || i == TRIES)
            st = tg_fail_errno(err, TG_IO, "%s: cannot create folder", name.data);
        tg_buf_fini(&name);
    }
    return st;
}

tg_status tg_dir_remove(const char *path, tg_error *err) {
    DIR *dir = opendir(path);
    if (!dir) {
        if (errno == ENOENT) return TG_OK;
        return tg_fail_errno(err, TG_IO, "%s: cannot open folder", path);
    }
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        char *child = tg_path_join(path, e->d_name);
        struct stat info;
        if (!child)
            st = tg_fail_nomem(err, 0);
        else if (!lstat(child, &info) && S_ISDIR(info.st_mode))
            st = tg_dir_remove(child, err);
        else
            st = tg_file_remove(child, err);
        tg_free(child);
    }
    closedir(dir);
    if (st == TG_OK && rmdir(path))
        st = tg_fail_errno(err, TG_IO, "%s: cannot remove folder", path);
    return st;
}

tg_status tg_dir_sync(const char *path, tg_error *err) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", path);
    tg_status st = fsync(fd) ? tg_fail_errno(err, TG_IO, "%s: fsync failed", path) : TG_OK;
    close(fd);
    return st;
}

tg_status tg_dir_sync_parent(const char *path, tg_error *err) {
    const char *slash = strrchr(path, '/');
    if (!slash) return tg_dir_sync(".", err);
    char *dir = tg_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    if (!dir) return tg_fail_nomem(err, strlen(path));
    tg_status st = tg_dir_sync(dir, err);
    tg_free(dir);
    return st;
}

char *tg_path_join(const char *dir, const char *name) {
    if (name[0] == '/' || !dir[0]) return tg_strdup(name);
    tg_buf b = {0};
    tg_buf_printf(&b, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name);
    return tg_buf_take(&b);
}
