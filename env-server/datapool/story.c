/* Story files: finding those of a split, and telling article from highlights. */
#include "env-server/datapool/story.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "env-server/datapool/table/datafile.h"
#include "env-server/datapool/table/files.h"
#include "env-server/metric/pystr.h"
#include "proto/split.h"

#include <stdio.h>
#include <string.h>

bool tg_story_is(const json_t *row) {
    const char *file = json_string_value(json_object_get(row, "file"));
    return file && tg_str_ends(file, ".story");
}

/* ---- one story ----------------------------------------------------------------------------- */

static bool ends_sentence(const char *line, size_t len) {
    static const char *const ends[] = {".", "!", "?", "'", "`", "\"", "\u2019", "\u201d", ")"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (len >= n && !memcmp(line + len - n, ends[i], n)) return true;
    }
    return false;
}

void tg_story_split(const char *text, tg_buf *article, tg_buf *highlights) {
    static const char mark[] = "@highlight";
    bool highlight = false;
    while (*text) {
        size_t len = strcspn(text, "\n"), used = len + (text[len] == '\n');
        const char *line = tg_py_strip(text, &len);
        text += used;
        if (!len) continue;
        if (len >= strlen(mark) && !memcmp(line, mark, strlen(mark))) {
            highlight = true;
            continue;
        }
        tg_buf *out = highlight ? highlights : article;
        if (out->len) tg_buf_putc(out, highlight ? '\n' : ' ');
        tg_buf_append(out, line, len);
        if (!ends_sentence(line, len) && !memmem(line, len, mark, strlen(mark)))
            tg_buf_puts(out, " .");
    }
}

/* ---- the files of a split ------------------------------------------------------------------ */

/* Opens the list of a split's addresses, or leaves *list NULL. */
static tg_status open_list(const char *root, tg_split split, tg_datafile **list, tg_error *err) {
    static const char *const folders[] = {"", "url_lists/"};
    *list = NULL;
    for (size_t i = 0; i < 2 && !*list; i++) {
        char name[64];
        snprintf(name, sizeof name, "%sall_%s.txt", folders[i], tg_split_name(split));
        char *path = tg_path_join(root, name);
        if (!path) return tg_fail_nomem(err, strlen(root));
        tg_status st = tg_path_exists(path) ? tg_datafile_open(list, path, err) : TG_OK;
        tg_free(path);
        if (st != TG_OK) return st;
    }
    return TG_OK;
}

static tg_status read_hashes(tg_datafile *list, tg_map *hashes, tg_error *err) {
    size_t size, at = 0;
    const char *bytes = tg_datafile_bytes(list, &size);
    while (at < size) {
        const char *end = memchr(bytes + at, '\n', size - at);
        size_t len = (size_t)((end ? end : bytes + size) - (bytes + at)), used = len + 1;
        const char *line = tg_py_strip(bytes + at, &len);
        char hex[41];
        tg_sha1_hex(line, len, hex);
        if (len && !tg_map_set(hashes, hex, 40, 1)) return tg_fail_nomem(err, 40);
        at += used;
    }
    return TG_OK;
}

/* Adds the stories of a folder; with hashes, only those. */
static tg_status add_stories(tg_files *files, const char *root, const char *folder,
                             const tg_map *hashes, tg_error *err) {
    tg_files all = {0};
    char *dir = tg_path_join(root, folder);
    tg_status st = dir ? tg_files_list(&all, dir, ".story", err) : tg_fail_nomem(err, strlen(root));
    for (size_t i = 0; i < all.n && st == TG_OK; i++) {
        const char *name = tg_file_name(all.paths[i]);
        uint64_t one;
        if (hashes && !tg_map_get(hashes, name, strcspn(name, "."), &one)) continue;
        st = tg_files_push(files, all.paths[i], err);
        all.paths[i] = NULL;
    }
    tg_files_fini(&all);
    tg_free(dir);
    return st;
}

tg_status tg_stories_open(const tg_place *place, tg_table *out, tg_error *err) {
    static const char *const folders[][4] = {[TG_SPLIT_TRAIN] = {"train", NULL},
                                             [TG_SPLIT_VAL] = {"val", "validation", "valid", NULL},
                                             [TG_SPLIT_TEST] = {"test", NULL}};
    if (place->is_file) return TG_OK;
    tg_files files = {0};
    tg_map hashes = {0};
    tg_datafile *list = NULL;
    tg_status st = open_list(place->root, place->split, &list, err);
    if (st == TG_OK && list) {
        st = read_hashes(list, &hashes, err);
        if (st == TG_OK) st = add_stories(&files, place->root, "cnn/stories", &hashes, err);
        if (st == TG_OK) st = add_stories(&files, place->root, "dailymail/stories", &hashes, err);
    }
    for (const char *const *f = folders[place->split]; *f && st == TG_OK && !files.n; f++)
        st = add_stories(&files, place->root, *f, NULL, err);
    if (st == TG_OK && files.n) {
        size_t n;
        char **paths = tg_files_take(&files, &n);
        st = tg_table_open_texts(out, paths, n, err);
    }
    tg_datafile_close(&list);
    tg_map_fini(&hashes);
    tg_files_fini(&files);
    return st;
}
