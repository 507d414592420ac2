/* common/base: status catalogue, arena, buffer, map, hashes, random numbers, files, names, threads. */
#include "tests/support/tg_test.h"

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/crc32.h"
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/lost_file.h"
#include "common/base/map.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/str.h"
#include "common/base/threads.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(every_status_has_its_own_name_and_text) {
    for (int i = 0; i < TG_STATUS_COUNT; i++) {
        CHECK(strlen(tg_status_name((tg_status)i)) > 1 && strlen(tg_status_text((tg_status)i)) > 1);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(tg_status_name((tg_status)i), tg_status_name((tg_status)j)) != 0 &&
                  strcmp(tg_status_text((tg_status)i), tg_status_text((tg_status)j)) != 0);
    }
    CHECK_EQ(tg_status_exit_code(TG_CONFIG), 78);
    CHECK_STR(tg_status_name((tg_status)999), "UNKNOWN");
}

TEST(error_messages_take_prefixes_and_never_overflow) {
    tg_error err;
    CHECK_EQ(tg_fail(&err, TG_DATA, "bad %d", 7), TG_DATA);
    CHECK_EQ(tg_error_prefix(&err, "file:%d: ", 3), TG_DATA);
    CHECK_STR(err.msg, "file:3: bad 7");
    for (int i = 0; i < 400; i++) tg_error_prefix(&err, "%s ", "again");
    CHECK(strlen(err.msg) < sizeof err.msg);
    CHECK_EQ(tg_fail(NULL, TG_IO, "nobody listens"), TG_IO);
}

TEST(error_messages_stay_one_line_of_text) {
    static const struct {
        const char *name, *shown;
    } table[] = {
        {"a\nb\r\x1b[31m\x7f", "a?b??[31m?"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xc0\xaf", "???"}, /* no UTF-8, and overlong */
        {"\xed\xa0\x80", "???"}, /* half a surrogate pair */
        {"\xc2\x9b"
         "2J",
         "??2J"},                                    /* an escape sequence of terminals */
        {"\xe2\x82", "??"},                          /* cut off */
        {"\xf4\x90\x80\x80\xe0\x9f\xbf", "???????"}, /* too large, overlong */
    };
    tg_error err;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        tg_fail(&err, TG_DATA, "%s", table[i].name);
        CHECK_STR(err.msg, table[i].shown);
        tg_fail(&err, TG_DATA, "x");
        tg_error_prefix(&err, "%s", table[i].name);
        CHECK(!strncmp(err.msg, table[i].shown, strlen(table[i].shown)));
    }
    char longest[2 * TG_ERROR_MAX];
    for (size_t i = 0; i + 1 < sizeof longest; i++) longest[i] = i % 2 ? '\xc3' : 'a';
    for (size_t i = 2; i + 1 < sizeof longest; i += 2) longest[i] = '\xa9';
    longest[sizeof longest - 1] = '\0';
    tg_fail(&err, TG_DATA, "%s", longest);
    CHECK_EQ(strlen(err.msg), sizeof err.msg - 1);
    CHECK(err.msg[sizeof err.msg - 2] != '\xc3'); /* where the room ended */
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static size_t resident(void) {
    size_t all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%zu %zu", &all, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Without it the second block comes from the heap, since a block as large was freed, and stays below what is allocated after it. */
TEST(large_blocks_go_back_when_they_are_freed) {
    enum { LARGE = 16 << 20 };
    tg_alloc_give_back();
    tg_free(tg_alloc_aligned(LARGE, 64));
    size_t before = resident();
    char *large = tg_alloc_aligned(LARGE, 64), *above = tg_alloc(100 << 10);
    CHECK(large && above);
    if (large) memset(large, 1, LARGE);
    CHECK(resident() >= before + LARGE / 2);
    tg_free(large);
    CHECK(resident() < before + LARGE / 2);
    tg_free(above);
}
#endif

TEST(arena_reuses_its_blocks) {
    tg_arena a = {0};
    for (int i = 0; i < 1000; i++) REQUIRE(tg_arena_alloc(&a, 100));
    REQUIRE(tg_arena_alloc(&a, 1 << 20));
    tg_arena_reset(&a);
    uint64_t before = tg_alloc_calls();
    for (int i = 0; i < 1000; i++) {
        unsigned char *p = tg_arena_alloc(&a, 100);
        REQUIRE(p && ((uintptr_t)p & 15) == 0 && p[0] == 0 && p[99] == 0);
        memset(p, 255, 100);
    }
    CHECK_EQ(tg_alloc_calls(), before);
    CHECK(!tg_arena_alloc(&a, SIZE_MAX));
    CHECK(!tg_arena_array(&a, SIZE_MAX / 2, 8));
    tg_arena_fini(&a);
}

TEST(buffer_failure_is_sticky) {
    tg_buf b = {0};
    tg_buf_puts(&b, "abc");
    tg_alloc_fail_after(0);
    char big[4096] = {0};
    tg_buf_append(&b, big, sizeof big);
    tg_alloc_fail_after(-1);
    CHECK(b.failed);
    tg_buf_puts(&b, "def");
    CHECK_EQ(b.len, 3);
    tg_buf_reset(&b);
    tg_buf_printf(&b, "%s-%d", "x", 5);
    CHECK_STR(b.data, "x-5");
    tg_buf_fini(&b);
}

TEST(map_keeps_insertion_order) {
    tg_map m = {0};
    char key[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "k%d", i * 7919 % 5000);
        REQUIRE(tg_map_set(&m, key, strlen(key), (uint64_t)i));
    }
    REQUIRE(tg_map_set(&m, "k0", 2, 99));
    CHECK_EQ(m.count, 5000);
    CHECK_STR(m.entries[1].key, "k2919");
    uint64_t v;
    CHECK(tg_map_get(&m, "k0", 2, &v) && v == 99);
    CHECK(!tg_map_get(&m, "absent", 6, &v));
    tg_map_fini(&m);
}

TEST(hashes_match_published_values) {
    unsigned char in[15];
    for (int i = 0; i < 15; i++) in[i] = (unsigned char)i;
    /* SipHash-2-4 test vector of the paper's appendix A. */
    CHECK(tg_siphash(0x0706050403020100u, 0x0f0e0d0c0b0a0908u, in, 15) == 0xa129ca6149be45e5u);
    CHECK_EQ(tg_crc32c(0, "123456789", 9), 0xe3069283);
    CHECK(tg_hash64("a", 1) != tg_hash64("b", 1) && tg_hash64("", 0) != tg_hash64("\0", 1));
}

static void end_child(int exit_code) {
    _exit(exit_code);
}

TEST(a_file_that_is_cut_while_it_is_mapped_is_named) {
    tg_error err;
    char path[400];
    snprintf(path, sizeof path, "%s/cut", tg_test_tmpdir());
    char text[5000] = "";
    REQUIRE_OK(tg_file_write_atomic(path, text, sizeof text, &err));
    int ends[2], status = 0;
    REQUIRE(!pipe(ends));
    const pid_t child = fork();
    if (!child) {
        tg_filemap map;
        dup2(ends[1], STDERR_FILENO);
        tg_lost_file_watch(end_child);
        if (tg_filemap_open(&map, path, NULL) != TG_OK || truncate(path, 10)) _exit(1);
        _exit(((const volatile unsigned char *)map.data)[4096] + 2);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 74);
    CHECK(n > 0 && strstr(text, "/cut: could not be read to its end"));
}

TEST(the_crc_of_zip_archives_is_one_by_any_way) {
    unsigned char text[1000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)(i * i >> 3);
    CHECK_EQ(tg_crc32(0, "123456789", 9), 0xcbf43926); /* the check value of CRC-32/ISO-HDLC */
    for (size_t len = 0; len < sizeof text; len += 7) {
        uint32_t bytewise = 0;
        for (size_t i = 0; i < len; i++) bytewise = tg_crc32(bytewise, text + i, 1);
        CHECK_EQ(tg_crc32(0, text, len), bytewise);
        CHECK_EQ(tg_crc32(tg_crc32(0, text, len / 3), text + len / 3, len - len / 3), bytewise);
    }
}

TEST(philox_matches_published_values) {
    /* Known answers distributed with the Random123 paper. */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < TG_COUNT_OF(known); i++) {
        uint32_t out[4];
        tg_philox4x32(out, known[i].counter, known[i].key);
        for (int j = 0; j < 4; j++) CHECK_EQ(out[j], known[i].out[j]);
    }
}

TEST(random_streams_are_uniform_and_apart) {
    double sum = 0, sumsq = 0, normal = 0, normal_sq = 0;
    int hist[7] = {0};
    for (int i = 0; i < 70000; i++) {
        tg_rng r = tg_rng_at(42, TG_RNG_TEST, (uint64_t)i, 3);
        double u = tg_rng_uniform(&r), n = tg_rng_normal(&r);
        sum += u, sumsq += u * u, normal += n, normal_sq += n * n;
        hist[tg_rng_below(&r, 7)]++;
    }
    CHECK_NEAR(sum / 70000, 0.5, 0.005);
    CHECK_NEAR(sumsq / 70000, 1.0 / 3, 0.005);
    CHECK_NEAR(normal / 70000, 0, 0.015);
    CHECK_NEAR(normal_sq / 70000, 1, 0.02);
    for (int i = 0; i < 7; i++) CHECK_NEAR(hist[i], 10000, 400);
}

TEST(permutation_is_one) {
    for (uint64_t n = 1; n < 300; n += 13) {
        unsigned char seen[300] = {0};
        int moved = 0;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = tg_permute(5, TG_RNG_PROMPT, 1, i, n);
            REQUIRE(j < n && !seen[j]);
            seen[j] = 1;
            moved += tg_permute(5, TG_RNG_PROMPT, 2, i, n) != j;
        }
        CHECK(n < 14 || moved > 0);
    }
}

TEST(a_file_is_removed_if_it_is_there) {
    tg_error err;
    char *path = tg_path_join(tg_test_tmpdir(), "there.txt");
    REQUIRE_OK(tg_file_write_atomic(path, "x", 1, &err));
    REQUIRE_OK(tg_file_remove(path, &err));
    CHECK(!tg_path_exists(path));
    REQUIRE_OK(tg_file_remove(path, &err));
    CHECK_EQ(tg_file_remove(tg_test_tmpdir(), &err), TG_IO); /* a folder is none */
    tg_free(path);
}

TEST(files_are_written_whole_or_not_at_all) {
    tg_error err;
    char *path = tg_path_join(tg_test_tmpdir(), "a/b/file.txt");
    char *dir = tg_path_join(tg_test_tmpdir(), "a/b");
    REQUIRE_OK(tg_dir_create(dir, &err));
    REQUIRE_OK(tg_file_write_atomic(path, "one", 3, &err));
    REQUIRE_OK(tg_file_append(path, "two", 3, &err));
    tg_buf b = {0};
    REQUIRE_OK(tg_file_read(path, 100, &b, &err));
    CHECK_STR(b.data, "onetwo");
    CHECK_EQ(tg_file_read(path, 5, &b, &err), TG_DATA);
    CHECK_EQ(tg_file_read("/nowhere/at/all", 5, &b, &err), TG_NOINPUT);
    CHECK_EQ(tg_file_read(dir, 5, &b, &err), TG_NOINPUT);
    char other[120];
    snprintf(other, sizeof other, "%s/pipe", dir);
    REQUIRE(!mkfifo(other, 0600));
    tg_filemap none;
    CHECK_EQ(tg_file_read(other, 5, &b, &err), TG_NOINPUT); /* nobody will ever write into it */
    CHECK_EQ(tg_filemap_open(&none, other, &err), TG_NOINPUT);
    REQUIRE(!unlink(other) && !symlink("/dev/zero", other));
    CHECK_EQ(tg_file_read(other, 1 << 20, &b, &err), TG_NOINPUT);
    CHECK(strstr(err.msg, "/pipe: is not a file") != NULL);
    CHECK_EQ(tg_filemap_open(&none, other, &err), TG_NOINPUT);
    tg_buf_reset(&b);
    CHECK_OK(tg_file_read("/dev/null", 5, &b, &err));
    CHECK_EQ(b.len, 0);
    CHECK_EQ(tg_file_write_atomic("/nowhere/at/all", "x", 1, &err), TG_IO);
    tg_filemap map;
    REQUIRE_OK(tg_filemap_open(&map, path, &err));
    CHECK_EQ(map.len, 6);
    tg_filemap_close(&map);
    REQUIRE_OK(tg_dir_remove(dir, &err));
    CHECK(!tg_path_exists(dir));
    tg_buf_fini(&b);
    tg_free(path);
    tg_free(dir);
}

TEST(nearest_name_is_a_typing_error_away) {
    static const char *const names[] = {"learning_rate", "n_epochs", "gamma", "n_envs"};
    CHECK_STR(tg_nearest("learnig_rate", names, 4), "learning_rate");
    CHECK_STR(tg_nearest("gama", names, 4), "gamma");
    CHECK_STR(tg_nearest("epochs", names, 4), "n_epochs");
    CHECK(!tg_nearest("zebra", names, 4));
    int64_t i;
    double d;
    CHECK(tg_parse_i64("-12", &i) && i == -12);
    CHECK(!tg_parse_i64("12x", &i) && !tg_parse_i64("", &i) &&
          !tg_parse_i64("99999999999999999999", &i));
    CHECK(tg_parse_f64("1e-6", &d) && d == 1e-6 && !tg_parse_f64("1,5", &d));
}

static void square(void *arg, int tile) {
    int *out = arg;
    out[tile] = tile * tile;
}

TEST(team_runs_every_tile_once) {
    tg_error err;
    for (int threads = 1; threads <= 4; threads++) {
        tg_team *team;
        REQUIRE_OK(tg_team_create(&team, threads, &err));
        for (int round = 0; round < 200; round++) {
            int out[100] = {0};
            tg_team_run(team, 100, square, out);
            for (int i = 0; i < 100; i++) REQUIRE(out[i] == i * i);
        }
        tg_team_destroy(&team);
        CHECK(!team);
    }
}

TEST_MAIN
