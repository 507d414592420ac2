/* The catalogue of everything that can go wrong, and the message that goes with it.
 *
 *     tg_status st = tg_file_read(path, &buf, err);
 *     if (st != TG_OK) return st;              // err already says what, where and what to do
 *
 * A function that can fail returns tg_status and takes a tg_error * last (NULL: no message wanted).
 * Bugs are TG_ASSERT (check.h), never a status. */
#ifndef TG_BASE_STATUS_H
#define TG_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

/* name, exit code (sysexits), text */
#define TG_STATUS_MAP(XX)                                                                          \
    XX(OK, 0, "ok")                                                                                \
    XX(USAGE, 64, "wrong command line")                                                            \
    XX(DATA, 65, "bad data")                                                                       \
    XX(NOINPUT, 66, "missing input")                                                               \
    XX(UNAVAILABLE, 69, "service unavailable")                                                     \
    XX(TIMEOUT, 69, "deadline exceeded")                                                           \
    XX(BUSY, 69, "busy, try again")                                                                \
    XX(BUG, 70, "internal error")                                                                  \
    XX(NOMEM, 71, "out of memory")                                                                 \
    XX(IO, 74, "input/output error")                                                               \
    XX(PROTOCOL, 76, "protocol violation")                                                         \
    XX(DENIED, 77, "permission denied")                                                            \
    XX(CONFIG, 78, "bad configuration")                                                            \
    XX(UNSUPPORTED, 78, "known, but not built into this version")                                  \
    XX(INTERRUPTED, 130, "interrupted")

typedef enum tg_status {
#define XX(name, code, text) TG_##name,
    TG_STATUS_MAP(XX)
#undef XX
        TG_STATUS_COUNT
} tg_status;

#if defined(__GNUC__)
#define TG_MUST_CHECK __attribute__((warn_unused_result))
#define TG_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TG_MUST_CHECK
#define TG_PRINTF(fmt, args)
#endif

#define TG_ERROR_MAX 768

/* Filled on failure only; the caller owns the storage. One line of UTF-8, no trailing newline: tg_fail puts ? for what
 * a name from a file may have that is not. */
typedef struct tg_error {
    tg_status status;
    char msg[TG_ERROR_MAX];
} tg_error;

const char *tg_status_name(tg_status status);
const char *tg_status_text(tg_status status);
int tg_status_exit_code(tg_status status);

/* Sets err (if given) and returns status, so that a failing path reads: return tg_fail(err, TG_DATA, ...). */
tg_status tg_fail(tg_error *err, tg_status status, const char *fmt, ...) TG_PRINTF(3, 4);

/* As tg_fail, with ": <strerror(errno)>" at the end. */
tg_status tg_fail_errno(tg_error *err, tg_status status, const char *fmt, ...) TG_PRINTF(3, 4);

/* TG_NOMEM with the size that could not be had. */
tg_status tg_fail_nomem(tg_error *err, size_t bytes);

/* Puts context before an existing message: "config.yml:3: " + msg. Returns err's status. */
tg_status tg_error_prefix(tg_error *err, const char *fmt, ...) TG_PRINTF(2, 3);

/* An analyzer sees one file at a time: it is told that a failure is never TG_OK. */
#ifdef __clang_analyzer__
#define tg_fail(err, status, ...) ((void)tg_fail(err, status, __VA_ARGS__), (status))
#define tg_fail_errno(err, status, ...) ((void)tg_fail_errno(err, status, __VA_ARGS__), (status))
#define tg_fail_nomem(err, bytes) ((void)tg_fail_nomem(err, bytes), TG_NOMEM)
#endif

#endif
