#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>

void tg_assert_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "textgen: bug at %s:%d: %s\n", file, line, what);
    abort();
}
