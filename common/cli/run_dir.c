/* Names and contents of run folders. Nothing here overwrites a file of an earlier run except config.json, on resume. */
#include "common/cli/run_dir.h"

#include "common/base/alloc.h"
#include "common/base/file.h"
#include "common/base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONFIG_MAX = 16 << 20 };

#define ANY "[A-Za-z0-9]"
static const char SOCKET_DIRS[] = "/tmp/textgen-" ANY ANY ANY ANY ANY ANY; /* what mkdtemp makes */

/* The last part of a path, without its extension and slashes behind it. */
static const char *stem_of(const char *path, int *len) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    const char *stem = path + begin, *dot = memrchr(stem, '.', end - begin);
    *len = dot && dot != stem ? (int)(dot - stem) : (int)(end - begin);
    return stem;
}

tg_status tg_run_dir_name(const char *config, const char *suffix, char **dir, tg_error *err) {
    int len;
    const char *stem = stem_of(config, &len);
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32] = "";
    if (localtime_r(&now, &tm)) strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &tm);
    *dir = NULL;
    for (int n = 1; n < 1000; n++) {
        tg_buf name = {0};
        tg_buf_printf(&name, "runs/%.*s%s-%s", len, stem, suffix, stamp);
        if (n > 1) tg_buf_printf(&name, "-%d", n);
        *dir = tg_buf_take(&name);
        if (!*dir) return tg_fail_nomem(err, strlen(config));
        if (!tg_path_exists(*dir)) return TG_OK;
        tg_free(*dir);
        *dir = NULL;
    }
    return tg_fail(err, TG_IO, "runs/%.*s%s-%s: too many runs of this name", len, stem, suffix,
                   stamp);
}

/* How many entries besides those named. */
static size_t count_others(const char *dir, const char *const *names) {
    DIR *d = opendir(dir);
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        bool known = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
        for (const char *const *name = names; !known && *name; name++)
            known = !strcmp(e->d_name, *name);
        if (!known) n++;
    }
    if (d) closedir(d);
    return n;
}

static const char *const nothing[] = {NULL};

bool tg_run_dir_in_use(const char *dir) {
    return tg_path_is_dir(dir) && count_others(dir, nothing) > 0;
}

bool tg_run_dir_has_checkpoint(const char *dir) {
    char *path = tg_path_join(dir, "checkpoints");
    DIR *d = path ? opendir(path) : NULL;
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = tg_str_starts(e->d_name, "checkpoint_") && !tg_str_ends(e->d_name, ".tmp");
    if (d) closedir(d);
    tg_free(path);
    return found;
}

/* An open and locked folder, or -1. */
static int lock_folder(const char *dir) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

tg_status tg_run_dir_lock(const char *dir, int *fd, tg_error *err) {
    *fd = -1;
    tg_status st = tg_dir_create(dir, err);
    if (st != TG_OK) return st;
    *fd = lock_folder(dir);
    if (*fd >= 0) return TG_OK;
    if (errno == EWOULDBLOCK)
        return tg_fail(err, TG_BUSY, "%s: another process is training in this folder", dir);
    return tg_fail_errno(err, TG_IO, "%s: cannot be locked", dir);
}

tg_status tg_run_dir_write_config(const char *dir, const tg_buf *config, tg_buf *replaced,
                                  tg_error *err) {
    tg_status st = TG_OK;
    char *path = tg_path_join(dir, "config.json");
    if (!path) return tg_fail_nomem(err, strlen(dir));
    bool same = false;
    if (tg_path_exists(path) && tg_file_read(path, CONFIG_MAX, replaced, NULL) == TG_OK)
        same = replaced->len == config->len && !memcmp(replaced->data, config->data, replaced->len);
    if (same)
        tg_buf_reset(replaced);
    else
        st = tg_file_write_atomic(path, config->data, config->len, err);
    tg_free(path);
    return st;
}

void tg_run_dir_discard(const char *dir) {
    static const char *const refused[] = {"config.json", "workers.log", "log.txt", "checkpoints",
                                          NULL};
    tg_error ignored;
    char *checkpoints = tg_path_join(dir, "checkpoints");
    bool used = !checkpoints || tg_run_dir_in_use(checkpoints) || count_others(dir, refused);
    tg_free(checkpoints);
    if (used) return;
    if (tg_dir_remove(dir, &ignored) != TG_OK)
        return; /* it was ours; what cannot be removed stays */
}

/* Ours, older than a minute (a younger one may not be locked yet), and nobody's lock on it: its process was killed. */
static bool is_abandoned(const char *path) {
    struct stat info;
    if (lstat(path, &info) || !S_ISDIR(info.st_mode) || info.st_uid != getuid()) return false;
    if (time(NULL) - info.st_mtime < 60) return false;
    int fd = lock_folder(path);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

static void sweep_socket_dirs(void) {
    glob_t found;
    if (glob(SOCKET_DIRS, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        static const char *const ours[] = {"pool", NULL};
        tg_error ignored;
        if (is_abandoned(found.gl_pathv[i]) && !count_others(found.gl_pathv[i], ours) &&
            tg_dir_remove(found.gl_pathv[i], &ignored) != TG_OK)
            break; /* somebody else is at it */
    }
    globfree(&found);
}

tg_status tg_socket_dir_create(char **dir, int *lock, tg_error *err) {
    sweep_socket_dirs();
    *lock = -1;
    *dir = tg_strdup("/tmp/textgen-XXXXXX");
    if (!*dir) return tg_fail_nomem(err, 24);
    if (mkdtemp(*dir)) {
        *lock = lock_folder(*dir);
        return TG_OK; /* without a lock it is only swept earlier than need be */
    }
    tg_free(*dir);
    *dir = NULL;
    return tg_fail_errno(err, TG_IO, "/tmp/textgen-XXXXXX: cannot make a folder for sockets");
}
