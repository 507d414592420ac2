/* Folder listings. */
#include "env-server/datapool/table/files.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *tg_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

tg_status tg_files_push(tg_files *f, char *path, tg_error *err) {
    if (path && f->n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        char **grown = tg_realloc_array(f->paths, cap, sizeof *grown);
        if (grown) f->paths = grown, f->cap = cap;
    }
    if (!path || f->n == f->cap) {
        tg_free(path);
        return tg_fail_nomem(err, f->n * sizeof *f->paths);
    }
    f->paths[f->n++] = path;
    return TG_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tg_status tg_files_list(tg_files *f, const char *dir, const char *suffix, tg_error *err) {
    size_t first = f->n;
    DIR *d = opendir(dir);
    if (!d) {
        if (errno == ENOENT || errno == ENOTDIR) return TG_OK;
        return tg_fail_errno(err, TG_IO, "%s: cannot be listed", dir);
    }
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(d));)
        if (e->d_name[0] != '.' && (!suffix || tg_str_ends(e->d_name, suffix)))
            st = tg_files_push(f, tg_path_join(dir, e->d_name), err);
    closedir(d);
    if (f->n > first) qsort(f->paths + first, f->n - first, sizeof *f->paths, by_name);
    return st;
}

static int digit(char c) {
    return c >= '0' && c <= '9';
}

static int by_number(const void *x, const void *y) {
    const char *a = tg_file_name(*(char *const *)x), *b = tg_file_name(*(char *const *)y);
    while (*a && *b) {
        if (digit(*a) && digit(*b)) {
            while (*a == '0' && digit(a[1])) a++;
            while (*b == '0' && digit(b[1])) b++;
            size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
            int order = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
            if (order) return order;
            a += n, b += m;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return *a ? 1 : *b ? -1 : by_name(x, y);
}

void tg_files_sort_by_number(tg_files *f) {
    if (f->n) qsort(f->paths, f->n, sizeof *f->paths, by_number);
}

char **tg_files_take(tg_files *f, size_t *n) {
    char **paths = f->paths;
    *n = f->n;
    memset(f, 0, sizeof *f);
    return paths;
}

void tg_files_fini(tg_files *f) {
    for (size_t i = 0; i < f->n; i++) tg_free(f->paths[i]);
    tg_free(f->paths);
    memset(f, 0, sizeof *f);
}
