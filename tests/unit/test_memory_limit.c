/* The limit of the control group, on folders that look like the kernel's. */
#include "common/base/file.h"
#include "common/net/memory_limit.h"
#include "tests/support/tg_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[64];

static void put(const char *folder, const char *name, const char *text) {
    char path[512];
    tg_error err;
    snprintf(path, sizeof path, "%s%s", root, folder);
    CHECK_OK(tg_dir_create(path, &err));
    snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
}

static void setup(void) {
    strcpy(root, "/tmp/tg-memory-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void teardown(void) {
    tg_error err;
    CHECK_OK(tg_dir_remove(root, &err));
}

TEST(four_fifths_of_the_nearest_limit) {
    tg_memory_limit m;
    setup();
    put("/a", "memory.max", "1000\n");
    put("/a", "memory.current", "900\n");
    put("/a", "memory.stat", "anon 700\nfile 150\ninactive_file 150\n");
    put("/a/b", "memory.max", "max\n");
    tg_memory_limit_init(&m, root, "0::/a/b\n");
    CHECK_EQ(m.limit, 1000);
    CHECK(!tg_memory_limit_is_tight(&m, 1000)); /* 750: cached files make room */
    put("/a", "memory.stat", "anon 801\ninactive_file 99\n");
    CHECK(!tg_memory_limit_is_tight(&m, 1050)); /* looks ten times a second */
    CHECK(tg_memory_limit_is_tight(&m, 1100));
    put("/a", "memory.current", "500\n");
    CHECK(!tg_memory_limit_is_tight(&m, 1200));
    teardown();
}

TEST(version_1_and_the_view_from_inside_a_container) {
    tg_memory_limit m;
    setup();
    put("/memory/x", "memory.limit_in_bytes", "67108864\n");
    put("/memory/x", "memory.usage_in_bytes", "67000000\n");
    tg_memory_limit_init(&m, root, "9:cpu,cpuacct:/y\n4:memory:/x\n0::/\n");
    CHECK_EQ(m.limit, 67108864);
    CHECK(tg_memory_limit_is_tight(&m, 1)); /* without memory.stat nothing is known to come back */
    put("/memory", "memory.limit_in_bytes", "67108864\n");
    tg_memory_limit_init(&m, root, "4:memory:/of/the/host\n");
    CHECK_EQ(m.limit, 67108864);
    CHECK(!tg_memory_limit_is_tight(&m, 1)); /* no usage to be read */
    teardown();
}

TEST(without_a_limit_never) {
    tg_memory_limit m;
    static const char *const groups[] = {"",         "0::/",    "4:memory:/z\n",
                                         "nonsense", "::::\n:", "4:memory"};
    setup();
    put("", "memory.max", "max\n");
    put("/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        tg_memory_limit_init(&m, root, groups[i]);
        CHECK_EQ(m.limit, 0);
        CHECK(!tg_memory_limit_is_tight(&m, 1));
    }
    tg_memory_limit_init_own(&m);
    teardown();
}

TEST_MAIN
