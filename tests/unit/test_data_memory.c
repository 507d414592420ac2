/* A file needs no memory of its size: files of 256 MiB are opened, checked row by row and read at
 * random, while the process stays small. */
#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/support/pool_case.h"
#include "tests/support/tg_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE_ROWS = 256, TEXT = 4000 };
static const uint64_t BOUND_KB = 160 << 10;

/* Of a file, in bytes; TEXTGEN_DATA_TEST_MB may ask for more. */
static uint64_t file_size(void) {
    const char *mb = getenv("TEXTGEN_DATA_TEST_MB");
    uint64_t n = mb ? strtoull(mb, NULL, 10) : 0;
    return (n ? n : 256) << 20;
}

static long peak_kb(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* ---- files --------------------------------------------------------------------------------- */

static void put_words(tg_buf *b, uint64_t row) {
    tg_rng r = tg_rng_at(7, TG_RNG_TEST, row, 0);
    char *at = tg_buf_reserve(b, TEXT);
    if (!at) return;
    snprintf(at, TEXT, "row %08llu:", (unsigned long long)row);
    for (size_t i = 13; i < TEXT; i += 8) {
        uint32_t v = tg_rng_u32(&r);
        for (size_t k = i; k < i + 8 && k < TEXT; k++, v >>= 4) at[k] = "etaoin shrdlucmf"[v & 15];
    }
    b->len += TEXT;
}

static char *path_of(const char *name) {
    return tg_path_join(tg_test_tmpdir(), name);
}

static uint64_t write_jsonl(const char *path) {
    tg_buf b = {0};
    uint64_t rows = 0, written = 0;
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    while (fd >= 0 && written < file_size()) {
        tg_buf_reset(&b);
        for (int i = 0; i < PAGE_ROWS; i++) {
            tg_buf_puts(&b, "{\"prompt\": \"");
            put_words(&b, rows++);
            tg_buf_puts(&b, "\"}\n");
        }
        CHECK(tg_fd_write(fd, b.data, b.len));
        written += b.len;
    }
    close(fd);
    tg_buf_fini(&b);
    return rows;
}

/* Just enough of Thrift's compact protocol for a footer. */
static void put_varint(tg_buf *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) tg_buf_putc(b, (char)(v | 0x80));
    tg_buf_putc(b, (char)v);
}
static void put_int(tg_buf *b, int delta, int type, int64_t v) { /* type 5: i32, 6: i64 */
    tg_buf_putc(b, (char)(delta << 4 | type));
    put_varint(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}
static void put_name(tg_buf *b, int delta, const char *name) {
    tg_buf_putc(b, (char)(delta << 4 | 8));
    put_varint(b, strlen(name));
    tg_buf_puts(b, name);
}

/* A row group with one required text column, in plain pages that are not packed. */
static uint64_t write_parquet(const char *path) {
    tg_buf page = {0}, b = {0};
    uint64_t rows = 0, at = 4;
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    CHECK(fd >= 0 && tg_fd_write(fd, "PAR1", 4));
    while (at < file_size()) {
        tg_buf_reset(&page);
        tg_buf_reset(&b);
        for (int i = 0; i < PAGE_ROWS; i++) {
            uint32_t len = TEXT;
            tg_buf_append(&page, &len, 4);
            put_words(&page, rows++);
        }
        put_int(&b, 1, 5, 0);
        put_int(&b, 1, 5, (int64_t)page.len);
        put_int(&b, 1, 5, (int64_t)page.len);
        tg_buf_putc(&b, 2 << 4 | 12);
        put_int(&b, 1, 5, PAGE_ROWS);
        put_int(&b, 1, 5, 0);
        put_int(&b, 1, 5, 3);
        put_int(&b, 1, 5, 3);
        tg_buf_append(&b, "\0\0", 2);
        CHECK(tg_fd_write(fd, b.data, b.len) && tg_fd_write(fd, page.data, page.len));
        at += b.len + page.len;
    }
    tg_buf_reset(&b);
    put_int(&b, 1, 5, 1);             /* version */
    tg_buf_append(&b, "\x19\x2c", 2); /* schema: two structs */
    put_name(&b, 4, "schema");
    put_int(&b, 1, 5, 1);
    tg_buf_putc(&b, 0);
    put_int(&b, 1, 5, 6);
    put_int(&b, 2, 5, 0);
    put_name(&b, 1, "prompt");
    tg_buf_putc(&b, 0);
    put_int(&b, 1, 6, (int64_t)rows);
    tg_buf_append(&b, "\x19\x1c\x19\x1c", 4); /* row groups: one; columns: one */
    put_int(&b, 2, 6, 4);
    tg_buf_putc(&b, 1 << 4 | 12);
    put_int(&b, 1, 5, 6);
    put_int(&b, 3, 5, 0);
    put_int(&b, 1, 6, (int64_t)rows);
    put_int(&b, 1, 6, (int64_t)at - 4);
    put_int(&b, 1, 6, (int64_t)at - 4);
    put_int(&b, 2, 6, 4);
    tg_buf_append(&b, "\0\0", 2);
    put_int(&b, 2, 6, (int64_t)rows);
    tg_buf_append(&b, "\0\0", 2);
    uint32_t footer = (uint32_t)b.len;
    tg_buf_append(&b, &footer, 4);
    tg_buf_puts(&b, "PAR1");
    CHECK(tg_fd_write(fd, b.data, b.len));
    close(fd);
    tg_buf_fini(&b);
    tg_buf_fini(&page);
    return rows;
}

/* ---- reading ------------------------------------------------------------------------------- */

static void read_file(const char *pool, const char *path, uint64_t rows, const char *check) {
    tg_arena options = {0}, arena = {0};
    tg_error err = {0};
    tg_datapool p;
    tg_buf want = {0};
    json_t *args = json_pack("{s:s, s:s}", "path", path, "check", check);
    REQUIRE_OK(pool_case_open(pool, args, NULL, TG_SPLIT_TRAIN, &options, &p, &err));
    json_decref(args);
    CHECK_EQ(p.count, rows);
    tg_rng r = tg_rng_at(3, TG_RNG_TEST, 0, 0);
    for (int i = 0; i < 3000; i++) {
        uint64_t row = i ? tg_rng_below(&r, rows) : rows - 1;
        tg_sample s;
        tg_arena_reset(&arena);
        tg_buf_reset(&want);
        put_words(&want, row);
        tg_buf_putc(&want, '\0');
        REQUIRE_OK(tg_datapool_get(&p, row, &arena, &s, &err));
        REQUIRE(!strcmp(s.prompt_text, want.data));
    }
    tg_datapool_close(&p);
    tg_buf_fini(&want);
    tg_arena_fini(&options);
    tg_arena_fini(&arena);
}

static void stays_small(const char *pool, const char *name, uint64_t (*write)(const char *)) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)pool, (void)name, (void)write, (void)read_file, (void)path_of;
    SKIP("a sanitizer's own memory would be measured");
#else
    char *path = path_of(name);
    uint64_t rows = write(path);
    long before = peak_kb();
    read_file(pool, path, rows, "lazy");
    read_file(pool, path, rows, "all");
    long after = peak_kb();
    printf("  %s: %llu MiB, %llu rows: the peak went from %ld to %ld MiB\n", pool,
           (unsigned long long)(file_size() >> 20), (unsigned long long)rows, before >> 10,
           after >> 10);
    CHECK((uint64_t)(after - before) < BOUND_KB);
    unlink(path);
    tg_free(path);
#endif
}

TEST(json_lines) {
    stays_small("jsonl", "big.jsonl", write_jsonl);
}

TEST(parquet) {
    stays_small("parquet", "big.parquet", write_parquet);
}

TEST_MAIN
