/* A test program is a file of TEST()s that ends with TEST_MAIN. Each CHECK prints both values when it fails.
 *
 *     TEST(adds) { CHECK_EQ(1 + 1, 2); CHECK_NEAR(sqrt(2.0), 1.41421356, 1e-8); }
 *     TEST_MAIN
 *
 * Exit code 0 only if every test passed; the last line is "N passed, N failed". An argument selects tests by
 * substring. A test that cannot run here says SKIP("why") and counts as passed. */
#ifndef TG_TEST_H
#define TG_TEST_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct tg_test {
    const char *name;
    void (*run)(void);
    struct tg_test *next;
} tg_test;

void tg_test_register(tg_test *t);
int tg_test_main(int argc, char **argv);
bool tg_check(bool ok, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void tg_test_skip(const char *why);
/* Path of a file below tests/ (TEXTGEN_TESTS overrides the folder). Static storage, valid until the 8th next call. */
const char *tg_test_path(const char *relative);
/* A fresh temporary folder, removed when the program ends. */
const char *tg_test_tmpdir(void);

#define TEST(id)                                                                                   \
    static void test_##id(void);                                                                   \
    __attribute__((constructor)) static void register_##id(void) {                                 \
        static tg_test t = {#id, test_##id, 0};                                                    \
        tg_test_register(&t);                                                                      \
    }                                                                                              \
    static void test_##id(void)

#define TEST_MAIN                                                                                  \
    int main(int argc, char **argv) {                                                              \
        return tg_test_main(argc, argv);                                                           \
    }

#define SKIP(why)                                                                                  \
    do {                                                                                           \
        tg_test_skip(why);                                                                         \
        return;                                                                                    \
    } while (0)

#define CHECK(cond) tg_check((cond), __FILE__, __LINE__, "%s", #cond)
/* Stops the test function when the condition does not hold. */
#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!CHECK(cond)) return;                                                                  \
    } while (0)
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        tg_check(a_ == b_, __FILE__, __LINE__, "%s == %s: %lld != %lld", #a, #b, a_, b_);          \
    } while (0)
#define CHECK_NEAR(a, b, tol)                                                                      \
    do {                                                                                           \
        double a_ = (double)(a), b_ = (double)(b), t_ = (double)(tol);                             \
        tg_check(fabs(a_ - b_) <= t_, __FILE__, __LINE__, "%s ~ %s: %.9g != %.9g (tolerance %g)",  \
                 #a, #b, a_, b_, t_);                                                              \
    } while (0)
#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *a_ = (a), *b_ = (b);                                                           \
        tg_check(a_ &&b_ && !strcmp(a_, b_), __FILE__, __LINE__, "%s == %s: \"%s\" != \"%s\"", #a, \
                 #b, a_ ? a_ : "(null)", b_ ? b_ : "(null)");                                      \
    } while (0)
/* status is TG_OK, else prints the error. Needs a tg_error named err in scope. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        tg_status s_ = (call);                                                                     \
        tg_check(s_ == TG_OK, __FILE__, __LINE__, "%s: %s", #call, s_ == TG_OK ? "" : err.msg);    \
    } while (0)
#define REQUIRE_OK(call)                                                                           \
    do {                                                                                           \
        tg_status s_ = (call);                                                                     \
        if (!tg_check(s_ == TG_OK, __FILE__, __LINE__, "%s: %s", #call,                            \
                      s_ == TG_OK ? "" : err.msg))                                                 \
            return;                                                                                \
    } while (0)

#endif
