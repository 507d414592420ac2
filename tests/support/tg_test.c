#include "tests/support/tg_test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    tg_test *first, **last;
    bool failed, skipped;
    char tmpdir[64];
} state;

void tg_test_register(tg_test *t) {
    if (!state.last) state.last = &state.first;
    *state.last = t;
    state.last = &t->next;
}

bool tg_check(bool ok, const char *file, int line, const char *fmt, ...) {
    if (ok) return true;
    state.failed = true;
    printf("  %s:%d: ", file, line);
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    return false;
}

void tg_test_skip(const char *why) {
    state.skipped = true;
    printf("  skipped: %s\n", why);
}

const char *tg_test_path(const char *relative) {
    static char paths[8][512];
    static int next;
    const char *root = getenv("TEXTGEN_TESTS");
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", root ? root : "tests", relative);
    return path;
}

static void remove_tmpdir(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", state.tmpdir);
    if (system(command)) fprintf(stderr, "cannot remove %s\n", state.tmpdir);
}

const char *tg_test_tmpdir(void) {
    if (!state.tmpdir[0]) {
        strcpy(state.tmpdir, "/tmp/textgen-test.XXXXXX");
        if (!mkdtemp(state.tmpdir)) abort();
        atexit(remove_tmpdir);
    }
    return state.tmpdir;
}

int tg_test_main(int argc, char **argv) {
    int passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (tg_test *t = state.first; t; t = t->next) {
        if (argc > 1 && !strstr(t->name, argv[1])) continue;
        state.failed = state.skipped = false;
        t->run();
        if (state.failed) {
            printf("not ok %s\n", t->name);
            failed++;
        } else {
            if (!getenv("TEXTGEN_QUIET")) printf("ok %s\n", t->name);
            passed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
