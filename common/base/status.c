/* Names, texts and exit codes of tg_status; formatting of error messages. */
#include "common/base/status.h"

#undef tg_fail
#undef tg_fail_errno
#undef tg_fail_nomem

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
    int exit_code;
} status_table[TG_STATUS_COUNT] = {
#define XX(name, code, text) [TG_##name] = {#name, text, code},
    TG_STATUS_MAP(XX)
#undef XX
};

const char *tg_status_name(tg_status status) {
    return (unsigned)status < TG_STATUS_COUNT ? status_table[status].name : "UNKNOWN";
}

const char *tg_status_text(tg_status status) {
    return (unsigned)status < TG_STATUS_COUNT ? status_table[status].text : "unknown status";
}

int tg_status_exit_code(tg_status status) {
    return (unsigned)status < TG_STATUS_COUNT ? status_table[status].exit_code : 70;
}

/* Bytes of the UTF-8 character at p; 0: none, or one that moves a cursor or ends a line. */
static int shown_bytes(const unsigned char *p) {
    if (p[0] < 0x80) return p[0] >= 0x20 && p[0] != 0x7f;
    int n = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
            : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
            : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                          : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0; /* the NUL at the end too */
    bool odd = (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xe0 && p[1] < 0xa0) ||
               (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
               (p[0] == 0xf4 && p[1] > 0x8f);
    return odd ? 0 : n;
}

/* Names come from files that anybody may have written: a message stays one line of text whatever is in them. */
static void keep_one_line(char *msg) {
    for (unsigned char *p = (unsigned char *)msg; *p;) {
        int n = shown_bytes(p);
        if (!n) *p = '?';
        p += n ? n : 1;
    }
}

tg_status tg_fail(tg_error *err, tg_status status, const char *fmt, ...) {
    if (!err) return status;
    char msg[TG_ERROR_MAX]; /* arguments may point into err->msg */
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    keep_one_line(msg);
    err->status = status;
    memcpy(err->msg, msg, sizeof msg);
    return status;
}

tg_status tg_fail_errno(tg_error *err, tg_status status, const char *fmt, ...) {
    int saved = errno;
    if (!err) return status;
    char msg[TG_ERROR_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    size_t used = strlen(msg);
    snprintf(msg + used, sizeof msg - used, ": %s", strerror(saved));
    keep_one_line(msg);
    err->status = status;
    memcpy(err->msg, msg, sizeof msg);
    return status;
}

tg_status tg_fail_nomem(tg_error *err, size_t bytes) {
    return tg_fail(err, TG_NOMEM, "out of memory: %zu bytes could not be allocated", bytes);
}

tg_status tg_error_prefix(tg_error *err, const char *fmt, ...) {
    if (!err) return TG_BUG;
    char msg[TG_ERROR_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(msg, sizeof msg, fmt, args);
    va_end(args);
    size_t used = strlen(msg);
    snprintf(msg + used, sizeof msg - used, "%s", err->msg);
    keep_one_line(msg);
    memcpy(err->msg, msg, sizeof msg);
    return err->status;
}
