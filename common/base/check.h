/* Assertions for bugs. Always on: a wrong program stops with file, line and the condition. Data from a
 * file, the network or a config is never asserted on: it is validated into a tg_status. */
#ifndef TG_BASE_CHECK_H
#define TG_BASE_CHECK_H

#if defined(__cplusplus)
extern "C" {
#endif

__attribute__((noreturn)) void tg_assert_failed(const char *file, int line, const char *what);

#if defined(__cplusplus)
}
#endif

#define TG_ASSERT(cond)                                                                            \
    do {                                                                                           \
        if (!(cond)) tg_assert_failed(__FILE__, __LINE__, #cond);                                  \
    } while (0)

#define TG_UNREACHABLE() tg_assert_failed(__FILE__, __LINE__, "unreachable")

#define TG_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TG_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TG_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
