/* What a weight file says of itself asks for no memory: files of the fuzzers' corpora, as they are and with lengths, counts and sizes made
 * huge, are opened or refused while every allocation of the process is watched. None may be larger than the file, but for a few pages, and
 * all together not many times so large. */
#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/nn/safetensors.h"
#include "common/nn/torch/pickle.h"
#include "common/nn/torch/state.h"
#include "common/nn/torch/torch_file.h"
#include "tests/support/tg_test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define OWN_ALLOCATOR 0
#else
#define OWN_ALLOCATOR 1
#endif

/* Of one request; a parser of JSON and an arena begin with some. */
enum { SPARE = 16 << 10, MUTANTS = 400 };
/* Of all requests, given back or not: lists that grow are asked for several times, a pickle has some memory in any case. */
enum { TIMES = 32, ALL_SPARE = 192 << 10 };

static atomic_size_t largest, all;

#if OWN_ALLOCATOR
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static void note(size_t n) {
    if (n > atomic_load(&largest)) atomic_store(&largest, n);
    atomic_fetch_add(&all, n);
}

void *malloc(size_t n) {
    note(n);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size) {
    size_t bytes;
    note(__builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n) {
    note(n);
    return __libc_realloc(p, n);
}
#endif

static tg_status run_pickle(const void *bytes, size_t size, tg_error *err) {
    tg_torch_state state = {0};
    tg_pickle p;
    tg_pickle_value out;
    size_t used;
    tg_pickle_init(&p, tg_torch_state_host(&state));
    tg_status st = tg_pickle_run(&p, bytes, size, &used, &out, err);
    tg_pickle_fini(&p);
    tg_torch_state_fini(&state);
    return st;
}

static tg_status open_bytes(const void *bytes, size_t size, bool torch, tg_error *err) {
    tg_tensor_file f;
    if (torch && !tg_torch_file_is(bytes, size)) return run_pickle(bytes, size, err);
    tg_status st = torch ? tg_torch_file_open_memory(&f, "hostile", bytes, size, err)
                         : tg_safetensors_open_memory(&f, "hostile", bytes, size, err);
    if (st == TG_OK) tg_tensor_file_close(&f);
    return st;
}

static void check_bytes(const char *name, const tg_buf *b, bool torch, int mutant) {
    tg_error err = {0};
    atomic_store(&largest, 0);
    atomic_store(&all, 0);
    const tg_status st = open_bytes(b->data, b->len, torch, &err);
    const size_t most = atomic_load(&largest), together = atomic_load(&all);
    tg_check(st == TG_OK || st == TG_DATA || st == TG_UNSUPPORTED, __FILE__, __LINE__,
             "%s, mutant %d: status %d: %s", name, mutant, (int)st, err.msg);
    tg_check(most <= b->len + SPARE, __FILE__, __LINE__,
             "%s, mutant %d: %zu bytes were asked for, the file has %zu", name, mutant, most,
             b->len);
    tg_check(together <= TIMES * b->len + ALL_SPARE, __FILE__, __LINE__,
             "%s, mutant %d: %zu bytes in all were asked for, the file has %zu", name, mutant,
             together, b->len);
}

/* Some bytes become what a huge number is made of; in text, digits become nines. */
static void enlarge(tg_buf *b, tg_rng *rng) {
    static const unsigned char high[] = {0xff, 0x7f, 0xfe, 0x80};
    const size_t at = (size_t)tg_rng_below(rng, b->len), run = 1 + (size_t)tg_rng_below(rng, 8);
    const unsigned char byte = high[tg_rng_below(rng, sizeof high)];
    for (size_t i = at; i < at + run && i < b->len; i++)
        b->data[i] = b->data[i] >= '0' && b->data[i] <= '9' ? '9' : (char)byte;
}

static void check_file(const char *path, bool torch) {
    tg_buf whole = {0}, copy = {0};
    tg_error err;
    REQUIRE_OK(tg_file_read(path, SIZE_MAX, &whole, &err));
    const char *name = strrchr(path, '/') + 1;
    check_bytes(name, &whole, torch, -1);
    for (int i = 0; i < MUTANTS && whole.len; i++) {
        tg_rng rng = tg_rng_at(11, TG_RNG_TEST, (uint64_t)i, 0);
        tg_buf_reset(&copy);
        tg_buf_append(&copy, whole.data, whole.len);
        for (uint64_t k = 0, n = 1 + tg_rng_below(&rng, 3); k < n; k++) enlarge(&copy, &rng);
        check_bytes(name, &copy, torch, i);
    }
    tg_buf_fini(&copy);
    tg_buf_fini(&whole);
}

static void check_corpus(const char *folder, bool torch) {
#if !OWN_ALLOCATOR
    (void)folder, (void)torch, (void)check_file;
    SKIP("a sanitizer has an allocator of its own");
#else
    DIR *d = opendir(tg_test_path(folder));
    REQUIRE(d != NULL);
    int files = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char *path = tg_path_join(tg_test_path(folder), e->d_name);
        check_file(path, torch);
        free(path);
        files++;
    }
    closedir(d);
    CHECK(files > 10);
#endif
}

TEST(a_large_request_is_seen) {
#if OWN_ALLOCATOR
    atomic_store(&largest, 0);
    void *volatile p = calloc(1000, 1000);
    free(p);
    CHECK_EQ(atomic_load(&largest), 1000000);
#endif
}

TEST(safetensors) {
    check_corpus("fuzz/corpus/safetensors", false);
}

TEST(torch_files) {
    check_corpus("fuzz/corpus/torch", true);
}

TEST_MAIN
