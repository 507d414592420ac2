/* main() of a fuzz target that was built without libFuzzer: replays tests/fuzz/corpus/<name> (or
 * the files given), and of each file also a fixed series of cut and changed versions. A crash ends
 * the program; that is the failure. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/support/tg_test.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VARIANTS = 100, FILE_MAX = 1 << 20, FILES_MAX = 4096 };

/* A copy of exactly `size` bytes, so that a sanitizer sees a read behind the end. */
static void run_copy(const char *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return;
    if (size) memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static bool replay(const char *path) {
    tg_buf text = {0};
    tg_error err = {0};
    if (tg_file_read(path, FILE_MAX, &text, &err) != TG_OK) {
        printf("  %s\n", err.msg);
        tg_buf_fini(&text);
        return false;
    }
    run_copy(text.data, text.len);
    tg_rng rng = tg_rng_at(1, TG_RNG_TEST, text.len, 0);
    for (int i = 0; i < VARIANTS && text.len; i++) {
        size_t at = (size_t)tg_rng_below(&rng, text.len);
        char kept = text.data[at];
        if (i % 2) text.data[at] = (char)tg_rng_u32(&rng);
        run_copy(text.data, i % 2 ? text.len : at);
        text.data[at] = kept;
    }
    tg_buf_fini(&text);
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t list_corpus(const char *dir, char **files) {
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && n < FILES_MAX && (e = readdir(d));) {
        if (e->d_name[0] != '.') files[n++] = tg_path_join(dir, e->d_name);
    }
    if (d) closedir(d);
    qsort(files, n, sizeof *files, by_name);
    return n;
}

int main(int argc, char **argv) {
    static char *files[FILES_MAX];
    size_t n = 0, passed = 0;
    if (argc > 1) {
        for (int i = 1; i < argc && n < FILES_MAX; i++) files[n++] = tg_strdup(argv[i]);
    } else {
        const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
        char dir[512];
        snprintf(dir, sizeof dir, "fuzz/corpus/%s", !strncmp(name, "fuzz_", 5) ? name + 5 : name);
        n = list_corpus(tg_test_path(dir), files);
        if (!n) printf("  no files in %s\n", tg_test_path(dir));
    }
    for (size_t i = 0; i < n; i++) {
        if (replay(files[i])) passed++;
        tg_free(files[i]);
    }
    printf("%zu passed, %zu failed\n", passed, n ? n - passed : 1);
    return !n || passed != n;
}
