/* A model folder appears, or takes the place of another, as a whole. */
#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/nn/model_files.h"
#include "common/nn/tensor_set.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static tg_status remove_file(const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    tg_status st = tg_file_remove(path, err);
    tg_free(path);
    return st;
}

/* The caller hears why it failed, not that this is left. */
static void discard(const char *folder) {
    if (tg_dir_remove(folder, NULL) != TG_OK)
        tg_log_warn("model", "%s: not complete, and cannot be removed", folder);
}

static tg_status write_new(const char *folder, tg_folder_writer *write, void *arg, tg_error *err) {
    char *fresh = NULL;
    tg_status st = tg_dir_create_beside(folder, &fresh, err);
    if (st != TG_OK) return st;
    st = write(arg, fresh, err);
    if (st == TG_OK && rename(fresh, folder))
        st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", fresh, folder);
    if (st == TG_OK)
        st = tg_dir_sync_parent(folder, err);
    else
        discard(fresh);
    tg_free(fresh);
    return st;
}

/* The files that make a folder a model: where none is, it is refused, whatever else is there. */
static bool is_entry(const char *name) {
    const char *const *entry = tg_weight_entries;
    while (*entry && strcmp(name, *entry) != 0) entry++;
    return *entry;
}

/* Moves the entries, or all the other files. */
static tg_status move_files(const char *from, const char *to, bool entries, tg_error *err) {
    DIR *dir = opendir(from);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", from);
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || is_entry(e->d_name) != entries) continue;
        char *source = tg_path_join(from, e->d_name), *target = tg_path_join(to, e->d_name);
        if (!source || !target)
            st = tg_fail_nomem(err, strlen(from));
        else if (rename(source, target))
            st = tg_fail_errno(err, TG_IO, "%s: cannot rename to %s", source, target);
        tg_free(source);
        tg_free(target);
    }
    closedir(dir);
    return st == TG_OK ? tg_dir_sync(to, err) : st;
}

/* stem-00001-of-00002end. */
static bool is_numbered(const char *name, const char *stem, const char *end) {
    static const char form[] = "-00000-of-00000";
    const size_t before = strlen(stem), n = sizeof form - 1;
    if (strlen(name) != before + n + strlen(end) || !tg_str_starts(name, stem) ||
        !tg_str_ends(name, end))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char c = name[before + i];
        if (form[i] == '0' ? c < '0' || c > '9' : c != form[i]) return false;
    }
    return true;
}

/* As model_shards.c and transformers call them. */
static bool is_shard(const char *name) {
    return is_numbered(name, "model", ".safetensors") || is_numbered(name, "pytorch_model", ".bin");
}

/* Without an entry nothing names them any more. */
static tg_status remove_shards(const char *folder, tg_error *err) {
    DIR *dir = opendir(folder);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", folder);
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));)
        if (is_shard(e->d_name)) st = remove_file(folder, e->d_name, err);
    closedir(dir);
    return st;
}

/* A folder in the place of a file can neither be removed nor replaced: it is found while the old model is whole. */
static tg_status check_free(const char *folder, const char *name, tg_error *err) {
    char *path = tg_path_join(folder, name);
    if (!path) return tg_fail_nomem(err, strlen(folder));
    struct stat info;
    tg_status st = TG_OK;
    if (!lstat(path, &info) && S_ISDIR(info.st_mode))
        st = tg_fail(err, TG_IO,
                     "%s: is a folder in the place of a file of the new model: move it "
                     "away, or name another folder to write",
                     path);
    tg_free(path);
    return st;
}

static tg_status check_way(const char *from, const char *to, tg_error *err) {
    DIR *dir = opendir(from);
    if (!dir) return tg_fail_errno(err, TG_IO, "%s: cannot open folder", from);
    tg_status st = check_free(to, "value_head.safetensors", err);
    for (const char *const *entry = tg_weight_entries; *entry && st == TG_OK; entry++)
        st = check_free(to, *entry, err);
    for (struct dirent *e; st == TG_OK && (e = readdir(dir));)
        if (e->d_name[0] != '.') st = check_free(to, e->d_name, err);
    closedir(dir);
    return st;
}

/* The old entries go first and the new one comes last: in between the folder is no model, but never one of two halves. */
static tg_status move_in(const char *from, const char *to, tg_error *err) {
    tg_status st = TG_OK;
    for (const char *const *entry = tg_weight_entries; *entry && st == TG_OK; entry++)
        st = remove_file(to, *entry, err);
    if (st == TG_OK) st = remove_file(to, "value_head.safetensors", err);
    if (st == TG_OK) st = tg_dir_sync(to, err);
    if (st == TG_OK) st = remove_shards(to, err);
    if (st == TG_OK) st = move_files(from, to, false, err);
    if (st == TG_OK) st = move_files(from, to, true, err);
    return st == TG_OK ? tg_dir_remove(from, err) : st;
}

/* Into a folder inside it first: what is there stays as it is until all of the new model is on disk. */
static tg_status write_over(const char *folder, tg_folder_writer *write, void *arg, tg_error *err) {
    char *stem = tg_path_join(folder, "incoming"), *fresh = NULL;
    tg_status st =
        stem ? tg_dir_create_beside(stem, &fresh, err) : tg_fail_nomem(err, strlen(folder));
    if (st == TG_OK) {
        st = write(arg, fresh, err);
        if (st == TG_OK) st = check_way(fresh, folder, err);
        if (st == TG_OK)
            st = move_in(fresh, folder,
                         err); /* should it fail, what is not moved yet is nowhere else */
        else
            discard(fresh);
    }
    tg_free(stem);
    tg_free(fresh);
    return st;
}

tg_status tg_model_write_folder(const char *folder, tg_folder_writer *write, void *arg,
                                tg_error *err) {
    if (tg_path_is_dir(folder)) return write_over(folder, write, arg, err);
    char *bare = tg_strdup(folder);
    if (!bare) return tg_fail_nomem(err, strlen(folder));
    for (size_t len = strlen(bare); len > 1 && bare[len - 1] == '/'; len--) bare[len - 1] = '\0';
    tg_status st = write_new(bare, write, arg, err);
    tg_free(bare);
    return st;
}
