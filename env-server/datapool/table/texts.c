/* A table of whole text files. Opening only lists them; a file is read when its row is. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "env-server/datapool/table/files.h"
#include "env-server/datapool/table/table.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE = 64 << 20 };

typedef struct texts {
    char **files;
    size_t n;
} texts;

static const char *folder_of(const char *path, size_t *len) {
    const char *name = tg_file_name(path), *end = name > path ? name - 1 : path, *begin = end;
    while (begin > path && begin[-1] != '/') begin--;
    *len = (size_t)(end - begin);
    return begin;
}

static tg_status texts_row(const tg_table *t, uint64_t i, json_t **out, tg_error *err) {
    const texts *x = t->state;
    tg_buf bytes = {0};
    json_t *text = NULL;
    tg_status st = tg_file_read(x->files[i], MAX_FILE, &bytes, err);
    if (st == TG_OK) st = tg_table_text(bytes.data ? bytes.data : "", bytes.len, &text, err);
    if (st == TG_OK) {
        size_t folder_len;
        const char *file = tg_file_name(x->files[i]), *folder = folder_of(x->files[i], &folder_len);
        *out =
            json_pack("{s:o, s:s, s:s%}", "text", text, "file", file, "folder", folder, folder_len);
        if (!*out) st = tg_fail(err, TG_DATA, "the file's name is not UTF-8");
    }
    tg_buf_fini(&bytes);
    return st;
}

static void texts_where(const tg_table *t, uint64_t i, char *out, size_t size) {
    const texts *x = t->state;
    snprintf(out, size, "%s", x->files[i]);
}

static void texts_close(void *state) {
    texts *x = state;
    for (size_t i = 0; i < x->n; i++) tg_free(x->files[i]);
    tg_free(x->files);
    tg_free(x);
}

/* Names and sizes: the content of thousands of files is not read for it. */
static uint64_t digest(const texts *x) {
    uint64_t hash = x->n;
    for (size_t i = 0; i < x->n; i++) {
        struct stat st = {0};
        const char *name = tg_file_name(x->files[i]);
        (void)stat(x->files[i], &st);
        uint64_t parts[] = {hash, tg_hash64(name, strlen(name)), (uint64_t)st.st_size};
        hash = tg_hash64(parts, sizeof parts);
    }
    return hash;
}

tg_status tg_table_open_texts(tg_table *t, char **files, size_t n, tg_error *err) {
    static const tg_table_ops ops = {texts_row, texts_where, texts_close};
    memset(t, 0, sizeof *t);
    texts *x = tg_alloc(sizeof *x);
    if (!x) {
        for (size_t i = 0; i < n; i++) tg_free(files[i]);
        tg_free(files);
        return tg_fail_nomem(err, sizeof *x);
    }
    *x = (texts){files, n};
    *t = (tg_table){&ops, x, n, digest(x), n ? files[0] : NULL};
    return TG_OK;
}
