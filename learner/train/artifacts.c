/* The growing files of a run folder: how long they were at a checkpoint, and back to that length on
 * a resume. */
#include "learner/train/checkpoint.h"

#include "common/base/alloc.h"
#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const tg_artifact_names[TG_ARTIFACTS] = {"rollout_info.jsonl", "training_info.jsonl",
                                                     "val_split_metrics.jsonl",
                                                     "test_split_metrics.jsonl", "timing.jsonl"};

static tg_status measure_one(const char *path, int64_t *size, tg_error *err) {
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return TG_OK;
    struct stat info;
    tg_status st = TG_OK;
    if (fd < 0 || fsync(fd) != 0 || fstat(fd, &info) != 0)
        st = tg_fail_errno(err, TG_IO, "%s: cannot be synced", path);
    else
        *size = info.st_size;
    if (fd >= 0) close(fd);
    return st;
}

tg_status tg_artifacts_measure(const char *run_dir, int64_t sizes[TG_ARTIFACTS], tg_error *err) {
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < TG_ARTIFACTS; i++) {
        char *path = tg_path_join(run_dir, tg_artifact_names[i]);
        st = path ? measure_one(path, &sizes[i], err) : tg_fail_nomem(err, 0);
        tg_free(path);
    }
    return st;
}

static tg_status size_of(const char *path, int64_t *size, tg_error *err) {
    struct stat info;
    *size = 0;
    if (stat(path, &info) == 0) {
        *size = info.st_size;
        return TG_OK;
    }
    return errno == ENOENT ? TG_OK : tg_fail_errno(err, TG_IO, "%s", path);
}

static tg_status cut(const char *path, int64_t size, tg_error *err) {
    if (size > 0)
        return truncate(path, size) == 0
                   ? TG_OK
                   : tg_fail_errno(err, TG_IO, "%s: cannot be cut back", path);
    /* An uninterrupted run would not have the file yet. */
    return tg_file_remove(path, err);
}

tg_status tg_artifacts_truncate(const char *run_dir, const int64_t sizes[TG_ARTIFACTS],
                                tg_error *err) {
    tg_status st = TG_OK;
    for (int pass = 0; pass < 2 && st == TG_OK; pass++) { /* look at all of them, then cut */
        for (int i = 0; st == TG_OK && i < TG_ARTIFACTS; i++) {
            char *path = tg_path_join(run_dir, tg_artifact_names[i]);
            int64_t now = 0;
            st = path ? size_of(path, &now, err) : tg_fail_nomem(err, 0);
            if (st == TG_OK && pass == 0 && now < sizes[i])
                st = tg_fail(err, TG_DATA, "%s has %lld bytes, the checkpoint was taken at %lld",
                             path, (long long)now, (long long)sizes[i]);
            if (st == TG_OK && pass == 1 && now > sizes[i]) st = cut(path, sizes[i], err);
            tg_free(path);
        }
    }
    return st;
}
