#include "common/config/json_pairs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool is_json(const char *text, size_t len) {
    json_t *root = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const bool valid = root != NULL;
    json_decref(root);
    return valid;
}

/* The half of a pair that an escape of valid JSON is: \uD83C. 0: it is none. */
static unsigned half_at(const char *p, const char *end, unsigned first) {
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return 0;
    char digits[5] = {p[2], p[3], p[4], p[5], 0};
    unsigned value = (unsigned)strtoul(digits, NULL, 16);
    return value >= first && value < first + 0x400 ? value : 0;
}

bool tg_json_join_pairs(const char *text, size_t len, tg_buf *out) {
    if (!is_json(text, len)) return false;
    const char *end = text + len;
    for (const char *p = text; p < end;) { /* a backslash is always inside a string here */
        const unsigned high = half_at(p, end, 0xd800), low = high ? half_at(p + 6, end, 0xdc00) : 0;
        if (low) {
            tg_buf_printf(out, "\\U%08X", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            p += 12;
            continue;
        }
        const size_t n = *p == '\\' ? 2 : 1;
        tg_buf_append(out, p, n);
        p += n;
    }
    return !out->failed;
}
